import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkAlias, MAX_ALIAS_INSTRUCTIONS } from './definition.ts'

const check = (formats: readonly unknown[]): ReturnType<typeof checkAlias> =>
  checkAlias({ name: 'mine', pack: 'mine', action_ref: 'core.noop', formats })

/** Some 1,800 instructions in a few characters; others on each call, so that nothing is compiled already. */
let count = 0
const large = (): string => `(?:a?){900}x${(count += 1)}`

test('formats of an alias that make too many instructions together are refused, before all are compiled', async () => {
  const formats = [large(), { representation: Array.from({ length: 100 }, large) }]
  const message = expect.stringContaining(`more than ${MAX_ALIAS_INSTRUCTIONS} instructions`)
  for (const given of [formats, formats.toReversed()]) {
    expect(await check(given)).toEqual({ problems: [{ path: expect.arrayContaining(['formats']), message }] })
  }
})

test('a hundred formats with a handful of captures are an alias', async () => {
  const formats = Array.from({ length: 100 }, (_, i) => `say${i} {{ a }} to {{ b }} at {{ c }} as {{ d=1 }} by {{ e }}`)
  expect(await check(formats)).toMatchObject({ definition: { formats }, warnings: [] })
})

test('formats that no command can match are warned of, in their place', async () => {
  const formats = ['good', 'bad {{', { representation: ['good too', '(?=x)'] }]
  expect(await check(formats)).toMatchObject({
    warnings: [
      { path: ['formats', '1'], message: expect.stringMatching(/^formats\[1\]: /) },
      { path: ['formats', '2', 'representation', '1'], message: expect.stringMatching(/^formats\[2\]: /) },
    ],
  })
})

test('others work while formats are compiled', async () => {
  let isDone = false
  const checking = check(Array.from({ length: 10 }, large)).finally(() => (isDone = true))
  let turns = 0
  for (; !isDone; turns += 1) await setImmediate()
  expect(await checking).toMatchObject({ warnings: [] })
  expect(turns).toBeGreaterThan(2)
})
