/** What inspection says of a definition (contract 08, 8.13). */

/** One mistake in a definition. */
export interface InspectionEntry {
  type: 'content' | 'context' | 'expression' | 'semantic' | 'syntax'
  message: string
  /** Where the mistake is, e.g. `tasks.task1.next[0].do`; null: in the definition as a whole. */
  spec_path: string | null
  /** The rule for that place, as a path in the schema of definitions. */
  schema_path: string | null
  /** Of entries about an expression; null: several languages in one text. */
  language?: 'yaql' | 'jinja' | null
  /** Of entries about an expression: its text. */
  expression?: string
}
