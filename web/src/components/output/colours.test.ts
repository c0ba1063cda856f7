import { describe, expect, test } from 'vitest'
import { coloursOn, contrast, backgrounds, lookOf, rgbOf, type Rgb } from './colours.ts'
import { RGB, type TextStyle } from './terminal-text.ts'

const everyColour = [
  ...Array.from({ length: 256 }, (_, i) => i),
  ...[0x00_00_00, 0xff_ff_ff, 0x80_80_80, 0xff_ff_00, 0x00_00_ff, 0x12_34_56].map((rgb) => RGB + rgb),
]
const selected: { light: Rgb; dark: Rgb } = { light: [0xe4, 0xee, 0xfc], dark: [0x1b, 0x2a, 0x40] }

describe.each(['light', 'dark'] as const)('on %s ground', (scheme) => {
  const on = backgrounds[scheme]

  test('every colour can be read, also where a line is chosen', () => {
    const unreadable = everyColour.filter((foreground) => {
      const { text } = coloursOn(on, { foreground })
      return text === undefined || contrast(text, on.ground) < 4.5 || contrast(text, selected[scheme]) < 4.5
    })
    expect(unreadable).toEqual([])
  })

  test('every colour can be read on every other one', () => {
    const pairs = everyColour.flatMap((foreground) =>
      everyColour.map((background): TextStyle => ({ foreground, background })),
    )
    const unreadable = pairs.filter((style) => {
      const { text, ground } = coloursOn(on, style)
      // Between black and white there is a grey on which both have 4.58.
      return text === undefined || ground === undefined || contrast(text, ground) < 4.5
    })
    expect(unreadable).toEqual([])
  })

  test.for<TextStyle>([
    { background: 7 },
    { isInverse: true },
    { isDim: true },
    { isInverse: true, foreground: 3, isDim: true },
  ])('%j can be read', (style) => {
    const { text, ground = on.ground } = coloursOn(on, style)
    expect(contrast(text ?? on.text, ground)).toBeGreaterThanOrEqual(4.5)
  })

  test('what can be read stays as it is', () => {
    const foreground = scheme === 'light' ? RGB + 0x00_00_8b : RGB + 0xff_d7_00
    expect(coloursOn(on, { foreground }).text).toEqual(rgbOf(foreground))
  })
})

test('the palette is that of xterm beyond the first sixteen', () => {
  expect(rgbOf(16)).toEqual([0, 0, 0])
  expect(rgbOf(208)).toEqual([255, 135, 0])
  expect(rgbOf(231)).toEqual([255, 255, 255])
  expect(rgbOf(232)).toEqual([8, 8, 8])
  expect(rgbOf(255)).toEqual([238, 238, 238])
})

test('a look says only what is not as usual', () => {
  expect(lookOf({ isBold: true, isUnderlined: true, isStruck: true })).toEqual({
    fontWeight: '700',
    textDecoration: 'underline line-through',
  })
  expect(lookOf({ foreground: 1 }).color).toMatch(/^light-dark\(rgb\(\d+ \d+ \d+\), rgb\(\d+ \d+ \d+\)\)$/)
})
