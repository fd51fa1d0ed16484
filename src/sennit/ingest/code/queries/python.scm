; Definitions and uses of names in Python.

(class_definition
  name: (identifier) @name
  body: (block . (expression_statement (string) @doc)?) @body) @definition.class

(function_definition
  name: (identifier) @name
  body: (block . (expression_statement (string) @doc)?) @body) @definition.function

(type_alias_statement left: (type) @name) @definition.type

(module
  (expression_statement
    (assignment left: (identifier) @name)) @definition.constant
  (#not-eq? @name "__all__"))

(module . (comment)* . (expression_statement (string) @doc) @definition.file)

(decorated_definition) @wrap
(comment) @comment

(import_statement name: (dotted_name) @import.module) @import
(import_statement name: (aliased_import name: (dotted_name) @import.module alias: (identifier) @import.alias)) @import
(import_from_statement module_name: (_) @import.module name: (dotted_name) @import.name) @import
(import_from_statement
  module_name: (_) @import.module
  name: (aliased_import name: (dotted_name) @import.name alias: (identifier) @import.alias)) @import
(import_from_statement module_name: (_) @import.module (wildcard_import)) @import

; uses
(call function: (identifier) @call)
(call function: (attribute attribute: (identifier) @call))
(identifier) @mention
