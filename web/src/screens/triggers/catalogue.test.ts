import { describe, expect, test } from 'vitest'
import {
  catalogueOf,
  usageText,
  catalogueRows,
  type CatalogueRule,
  type CatalogueTrigger,
  type CatalogueType,
} from './catalogue.ts'

const type = (ref: string, description = ''): CatalogueType => {
  const dot = ref.indexOf('.')
  return { ref, pack: ref.slice(0, dot), name: ref.slice(dot + 1), description }
}
const hook = (ref: string, url: string): CatalogueTrigger => ({
  ref,
  type: 'core.svc.webhook',
  parameters: { url },
  description: '',
})
const rule = (ref: string, trigger: string): CatalogueRule => ({
  ref,
  enabled: true,
  trigger: { ref: trigger, type: 'core.svc.webhook' },
})

const types = [
  type('shop.sold', 'Something was sold.'),
  type('core.svc.webhook', 'A request has come in.'),
  type('core.a'),
]
const triggers = [hook('core.2', 'push'), hook('core.1', 'orders')]
const rules = [rule('shop.x', 'core.1'), rule('shop.y', 'core.1'), rule('shop.z', 'core.gone')]
const whole = catalogueOf(types, triggers, rules)
const shown = (search: string): string[] =>
  catalogueRows(whole, search).map((row) => (row.kind === 'pack' ? `${row.pack} ${row.count}` : row.type.ref))

describe('trigger types', () => {
  test('stand below their packs, with what there is of them', () => {
    expect(shown('')).toEqual(['core 2', 'core.a', 'core.svc.webhook', 'shop 1', 'shop.sold'])
    const counts = catalogueRows(whole, '').flatMap((row) => (row.kind === 'type' ? [usageText(row)] : []))
    expect(counts).toEqual(['', '2 triggers, 2 rules', ''])
    expect(whole.triggers.get('core.svc.webhook')?.map(({ ref }) => ref)).toEqual(['core.1', 'core.2'])
    expect(whole.triggerOf('core.2')).toBe(triggers[0])
    expect(whole.rules?.get('core.1')?.map(({ ref }) => ref)).toEqual(['shop.x', 'shop.y'])
  })

  test.each<[search: string, expected: string[]]>([
    ['SOLD', ['shop 1', 'shop.sold']],
    ['request core', ['core 1', 'core.svc.webhook']],
    ['orders', ['core 1', 'core.svc.webhook']],
    ['orders sold', []],
    ['  ', ['core 2', 'core.a', 'core.svc.webhook', 'shop 1', 'shop.sold']],
  ])('%j finds %j', (search, expected) => {
    expect(shown(search)).toEqual(expected)
  })

  test('of somebody who may list no rules have no number of them', () => {
    const rows = catalogueRows(catalogueOf(types, triggers, undefined), 'webhook')
    expect(rows.map((row) => (row.kind === 'type' ? [row.rules, usageText(row)] : row.kind))).toEqual([
      'pack',
      [undefined, '2 triggers'],
    ])
  })

  test('may be many, with names of any length: a search reads the first of them', () => {
    let read = 0
    const many = Array.from({ length: 3000 }, (_, i) =>
      Object.defineProperty(hook(`core.${i}`, 'x'), 'parameters', {
        get: () => {
          read += 1
          return { url: 'x'.repeat(1000) }
        },
      }),
    )
    const catalogue = catalogueOf(types, many, [])
    const readBefore = read
    expect(catalogueRows(catalogue, 'nothing has this')).toEqual([])
    // 20,000 characters in lines of 80.
    expect(read - readBefore).toBeLessThan(300)
  })
})
