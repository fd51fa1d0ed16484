; Patterns of the TypeScript grammar only.

(abstract_class_declaration name: (_) @name body: (class_body) @body) @definition.class
(interface_declaration name: (type_identifier) @name body: (_) @body) @definition.interface
(enum_declaration name: (identifier) @name body: (_) @body) @definition.enum
(enum_body name: (property_identifier) @name @variant)
(enum_assignment name: (property_identifier) @name) @variant
(type_alias_declaration name: (type_identifier) @name) @definition.type
(internal_module name: (_) @name body: (_) @body) @definition.module
(module name: (_) @name body: (_) @body) @definition.module
(function_signature name: (identifier) @name) @definition.function
(abstract_method_signature name: (_) @name) @definition.method
(public_field_definition
  name: (_) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @definition.method

(ambient_declaration) @wrap

; uses
(type_identifier) @reference
