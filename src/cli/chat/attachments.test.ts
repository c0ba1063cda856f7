import { expect, it } from 'vitest'
import { attachmentsIn, mapTexts, placeText, textOf } from './attachments.ts'

it.each<[what: string, extra: unknown, expected: unknown[]]>([
  ['nothing', undefined, []],
  ['text', 'red', []],
  ['something else', { whatever: { deep: 1 }, icon_emoji: ':boom:' }, []],
  ['attributes of one', { color: 'good', title: 'Done', colour: 'x' }, [{ color: 'good', title: 'Done' }]],
  ['those of its chat', { slack: { color: '#0a0' }, color: 'red' }, [{ color: '#0a0' }]],
  ['those of another chat', { mattermost: { color: '#0a0' } }, []],
  ['a list', { slack: { attachments: [{ text: 'a' }, 7, {}, { text: 'b' }] } }, [{ text: 'a' }, { text: 'b' }]],
  ['numbers and flags', { title: 7, text: true, footer: null }, [{ title: '7', text: 'true' }]],
  [
    'fields',
    { fields: [{ title: 'Host', value: 3, short: true }, 'x', { value: 'only' }] },
    [
      {
        fields: [
          { title: 'Host', value: '3', short: true },
          { title: '', value: 'only', short: false },
        ],
      },
    ],
  ],
  [
    'links, if they are web addresses',
    { image_url: 'https://x.example/a.png', title_link: 'javascript:alert(1)', thumb_url: 'http://x|<y>' },
    [{ image_url: 'https://x.example/a.png' }],
  ],
])('extra with %s', (_, extra, expected) => {
  expect(attachmentsIn(extra, 'slack')).toEqual(expected)
})

it('what is in extra has a bound', () => {
  const one = {
    text: 'x'.repeat(5_000),
    fields: Array.from({ length: 50 }, () => ({ title: 't', value: '😀'.repeat(2_000) })),
  }
  const all = attachmentsIn({ attachments: Array.from({ length: 50 }, () => one) }, 'slack')
  expect(all.length).toBeLessThanOrEqual(10)
  expect(all[0]?.text).toHaveLength(3_000)
  expect(JSON.stringify(all).length).toBeLessThan(30_000)
  expect(JSON.stringify(all)).not.toMatch(/\\ud83d/)
})

it('the text of the post is in the first attachment without a text, else it stays where it is', () => {
  expect(placeText('Done.', [])).toEqual({ text: 'Done.', attachments: [] })
  expect(placeText('Done.', [{ color: 'good' }])).toEqual({
    text: '',
    attachments: [{ color: 'good', text: 'Done.', fallback: 'Done.' }],
  })
  expect(placeText('Done.', [{ text: 'More' }, { title: 'T' }])).toEqual({
    text: 'Done.',
    attachments: [
      { text: 'More', fallback: 'More' },
      { title: 'T', fallback: 'T' },
    ],
  })
})

it('texts are changed, links and the colour are not', () => {
  const given = { color: 'a', title: 'a', title_link: 'https://a', fields: [{ title: 'a', value: 'a', short: true }] }
  expect(mapTexts(given, (text) => text.replaceAll('a', 'b'))).toEqual({
    color: 'a',
    title: 'b',
    title_link: 'https://a',
    fields: [{ title: 'b', value: 'b', short: true }],
  })
})

it('where a chat has no attachments they are lines', () => {
  expect(
    textOf([
      {
        color: 'good',
        title: 'Web',
        title_link: 'https://x',
        text: 'up',
        fields: [{ title: 'Host', value: 'a', short: true }],
      },
      { image_url: 'https://y', footer: 'svc' },
    ]),
  ).toBe('Web https://x\nup\nHost: a\nhttps://y\nsvc')
})
