; Patterns that JavaScript and TypeScript share.

(class_declaration name: (_) @name body: (class_body) @body) @definition.class
(variable_declarator name: (identifier) @name value: (class body: (class_body) @body)) @definition.class

(function_declaration name: (identifier) @name body: (statement_block) @body) @definition.function
(generator_function_declaration name: (identifier) @name body: (statement_block) @body) @definition.function
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @definition.function

; app.use = function (…) {…}
(expression_statement
  (assignment_expression
    left: (member_expression object: (_) @owner property: (property_identifier) @name)
    right: [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
      (class body: (_) @body)
    ])
  (#not-eq? @name "exports")) @definition.function

; { handle(…) {…}, handle: (…) => {…} }
(method_definition name: (_) @name body: (statement_block) @body) @definition.method
(pair
  key: (property_identifier) @name
  value: [
    (arrow_function body: (statement_block) @body)
    (function_expression body: (statement_block) @body)
  ]) @definition.method

(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition.constant))
(program (variable_declaration (variable_declarator name: (identifier) @name) @definition.constant))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition.constant)))

(export_statement) @wrap
(lexical_declaration) @wrap
(variable_declaration) @wrap
(comment) @comment

(import_statement source: (string (string_fragment) @import.module)) @import
(import_statement
  (import_clause (identifier) @import.name)
  source: (string (string_fragment) @import.module)) @import
(import_statement
  (import_clause (namespace_import (identifier) @import.alias))
  source: (string (string_fragment) @import.module)) @import
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @import.name alias: (identifier)? @import.alias)))
  source: (string (string_fragment) @import.module)) @import
(variable_declarator
  name: (identifier) @import.alias
  value: (call_expression
    function: (identifier) @_require
    arguments: (arguments . (string (string_fragment) @import.module)))
  (#eq? @_require "require")) @import
(variable_declarator
  name: (identifier) @import.alias
  value: (member_expression
    object: (call_expression
      function: (identifier) @_require
      arguments: (arguments . (string (string_fragment) @import.module)))
    property: (property_identifier) @import.name)
  (#eq? @_require "require")) @import
(call_expression
  function: (identifier) @_require
  arguments: (arguments . (string (string_fragment) @import.module))
  (#eq? @_require "require")) @import
(export_statement source: (string (string_fragment) @import.module)) @import

; uses
(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: (property_identifier) @call))
(new_expression constructor: (identifier) @call)
(identifier) @mention
