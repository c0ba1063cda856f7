/** Wire records of workflows (contract 08). */
import { record, Type, type Static } from '../../lib/schema/index.ts'

/** One mistake in a workflow definition. */
export const InspectionEntry = record(
  'InspectionEntry',
  Type.Object({
    type: Type.Enum(['content', 'context', 'expression', 'semantic', 'syntax', 'warning']),
    message: Type.String(),
    spec_path: Type.Nullable(Type.String({ description: 'Where the mistake is; null: in the definition as a whole.' })),
    schema_path: Type.Nullable(
      Type.String({ description: 'The rule for that place, as a path in the schema of definitions.' }),
    ),
    language: Type.Optional(
      Type.Nullable(
        Type.Enum(['yaql', 'jinja'], { description: 'Of the expression; null: one text has both languages.' }),
      ),
    ),
    expression: Type.Optional(Type.String({ description: 'The text of the expression with the mistake.' })),
    hint: Type.Optional(Type.String({ description: 'What may have been meant. Only with the query `hints`.' })),
  }),
  {
    example: {
      type: 'semantic',
      message: 'The task "finsh" is not defined.',
      spec_path: 'tasks.prepare.next[0].do',
      schema_path: 'properties.tasks.patternProperties.^\\w+$.properties.next.items.properties.do',
    },
  },
)
export type InspectionEntry = Static<typeof InspectionEntry>
