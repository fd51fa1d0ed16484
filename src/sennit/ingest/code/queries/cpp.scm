; Patterns that C++ adds to those of C.

(class_specifier name: (_) @name body: (_) @body) @definition.class
(namespace_definition name: (_) @name body: (_) @body) @definition.module
(alias_declaration name: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.type

(function_definition
  declarator: [
    (function_declarator declarator: [
      (qualified_identifier) (field_identifier) (destructor_name) (operator_name)
    ] @name)
    (reference_declarator (function_declarator declarator: (_) @name))
    (pointer_declarator declarator: (function_declarator declarator: [
      (qualified_identifier) (field_identifier)
    ] @name))
  ]
  body: (_)? @body) @definition.function

(field_declaration
  declarator: [
    (function_declarator declarator: (field_identifier) @name)
    (reference_declarator (function_declarator declarator: (field_identifier) @name))
    (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))
  ]) @definition.function

; class EXPORTED Name {…}: the grammar parses a class with a macro before its name as a function.
(function_definition
  type: (class_specifier !body)
  declarator: (identifier) @name
  body: (compound_statement) @body) @definition.class
(function_definition
  type: (struct_specifier !body)
  declarator: (identifier) @name
  body: (compound_statement) @body) @definition.struct
(declaration
  declarator: (init_declarator
    declarator: (function_declarator declarator: (identifier) @name))) @definition.function

(template_declaration) @wrap

; uses
(call_expression function: (qualified_identifier name: (identifier) @call))
