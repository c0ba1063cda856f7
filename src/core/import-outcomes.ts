import { record, Type, type Static } from '../lib/schema/index.ts'

/** What became of each record of an import, in their order. */
export const ImportOutcomes = record(
  'ImportOutcomes',
  Type.Object({
    outcomes: Type.Array(
      Type.Object({
        id: Type.String(),
        outcome: Type.Enum(['imported', 'unchanged', 'skipped', 'refused'], {
          type: 'string',
          description: '`unchanged`: one with this id is here. `skipped`: what it belongs to is not here.',
        }),
        why: Type.Optional(Type.String()),
      }),
    ),
  }),
  { example: { outcomes: [{ id: '67a1f0c2e4b0a1d2c3e4f506', outcome: 'imported' }] } },
)
export type ImportOutcomes = Static<typeof ImportOutcomes>

export type ImportOutcome = ImportOutcomes['outcomes'][number]
