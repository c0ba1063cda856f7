import { describe, expect, test } from 'vitest'
import {
  JSON_PLACE,
  reduceEditor,
  refusalAt,
  refusalOf,
  startEditor,
  type EditorAction,
  type EditorState,
} from './rule-editor-state.ts'
import { draftOf, emptyRule, newRow, type RuleDraft } from './rule-model.ts'

const read = draftOf(emptyRule)
if ('problem' in read) throw new Error(read.problem)
const draft: RuleDraft = { ...read.draft, name: 'n', criteria: [newRow('trigger.body.a')] }
const rowId = draft.criteria[0]?.id ?? ''

const after = (...actions: EditorAction[]): EditorState => actions.reduce(reduceEditor, startEditor(draft))

describe('a problem', () => {
  const problems = new Map([
    ['name', 'Enter a name.'],
    ['trigger', 'Choose a trigger type.'],
    [rowId, 'Enter a pattern.'],
  ])
  const refused: EditorAction = { type: 'refused', refusal: { problems, general: 'Correct the marked parts.' } }

  test('goes with the edit of its part, and the general one with any', () => {
    const { refusal } = after(refused, { type: 'draft edited', changes: { name: 'other' } })
    expect([...refusal.problems.keys()]).toEqual(['trigger', rowId])
    expect(refusal.general).toBeUndefined()
    const ofRow = after(refused, { type: 'draft edited', changes: { criteria: [] } })
    expect([...ofRow.refusal.problems.keys()]).toEqual(['name', 'trigger'])
  })

  test('goes when a check starts, and when the JSON is edited', () => {
    expect(after(refused, { type: 'check started' }).refusal.problems.size).toBe(0)
    const inJson = after(
      { type: 'JSON shown', text: '{' },
      { type: 'refused', refusal: refusalAt(JSON_PLACE, 'Line 1, column 2: …') },
      { type: 'JSON edited', text: '{}' },
    )
    expect(inJson).toMatchObject({ jsonText: '{}', refusal: { problems: new Map() } })
  })
})

test.each([
  [{ type: 'draft edited', changes: { enabled: true } }],
  [{ type: 'JSON edited', text: '{}' }],
  [{ type: 'check started' }],
  [{ type: 'JSON shown', text: '{}' }],
  [{ type: 'form shown', draft }],
] satisfies [EditorAction][])('an override is withdrawn by %j', (action) => {
  const refused: EditorAction = { type: 'refused', refusal: refusalOf('Changed meanwhile.', 'conflict') }
  expect(after(refused).refusal.override).toBe('conflict')
  expect(after(refused, action).refusal.override).toBeUndefined()
})

test('saving keeps what was refused until the check', () => {
  const refused: EditorAction = { type: 'refused', refusal: refusalOf('Cannot match.', 'criteria') }
  expect(after(refused, { type: 'save started' })).toMatchObject({ isSaving: true, refusal: { override: 'criteria' } })
  expect(after({ type: 'save started' }, refused, { type: 'save ended' })).toMatchObject({
    isSaving: false,
    refusal: { override: 'criteria' },
  })
})

test('refusals are counted, also the same one twice, and nothing else is', () => {
  const refused: EditorAction = { type: 'refused', refusal: refusalAt('name', 'Enter a name.') }
  expect(after(refused, refused).refusals).toBe(2)
  const others: EditorAction[] = [
    { type: 'draft edited', changes: { name: 'x' } },
    { type: 'check started' },
    { type: 'JSON shown', text: '{}' },
    { type: 'JSON edited', text: '[]' },
    { type: 'form shown', draft },
    { type: 'save started' },
    { type: 'save ended' },
  ]
  expect(after(refused, ...others).refusals).toBe(1)
})

test('the draft is kept while the JSON is shown, and replaced by what the form shows again', () => {
  const inJson = after({ type: 'JSON shown', text: '{}' }, { type: 'JSON edited', text: '{"name": "m"}' })
  expect(inJson.draft).toBe(draft)
  const other = { ...draft, name: 'm' }
  expect(reduceEditor(inJson, { type: 'form shown', draft: other })).toMatchObject({
    draft: other,
    jsonText: undefined,
  })
})
