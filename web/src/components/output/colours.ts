/** Colours of terminals as they can be read, on light and on dark ground. */
import { RGB, type Colour, type TextStyle } from './terminal-text.ts'

export type Rgb = readonly [red: number, green: number, blue: number]

interface Ground {
  text: Rgb
  ground: Rgb
}

/** `--text` and `--surface` of the style sheet. */
export const backgrounds: { light: Ground; dark: Ground } = {
  light: { text: [0x1a, 0x1f, 0x26], ground: [0xff, 0xff, 0xff] },
  dark: { text: [0xe4, 0xe8, 0xee], ground: [0x17, 0x1c, 0x23] },
}

/** Some more than the 4.5 that everybody can read, because a line that is chosen has another ground. */
const CONTRAST = 5.4
const DIM_SHARE = 0.3

/** As the terminal of an editor has them; xterm's are too dark or too bright on any ground. */
const named: readonly Rgb[] = [
  [0, 0, 0],
  [205, 49, 49],
  [13, 160, 95],
  [190, 150, 0],
  [36, 114, 200],
  [188, 63, 188],
  [17, 150, 185],
  [204, 204, 204],
  [110, 110, 110],
  [241, 76, 76],
  [35, 209, 139],
  [230, 200, 40],
  [59, 142, 234],
  [214, 112, 214],
  [41, 184, 219],
  [255, 255, 255],
]
const cubeSteps = [0, 95, 135, 175, 215, 255] as const

export function rgbOf(colour: Colour): Rgb {
  if (colour >= RGB) return [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255]
  const known = named[colour]
  if (known !== undefined) return known
  if (colour >= 232) {
    const grey = 8 + (colour - 232) * 10
    return [grey, grey, grey]
  }
  const place = colour - 16
  const step = (n: number): number => cubeSteps[n % 6] ?? 0
  return [step(Math.floor(place / 36)), step(Math.floor(place / 6)), step(place)]
}

/** How a span looks; what is undefined is as usual. */
// A type, not an interface: styles are open.
export type SpanLook = {
  color?: string
  backgroundColor?: string
  fontWeight?: string
  fontStyle?: string
  textDecoration?: string
}

const looks = new WeakMap<TextStyle, SpanLook>()

/** @param style one that others share: its look is made once */
export function lookOf(style: TextStyle): SpanLook {
  const known = looks.get(style)
  if (known !== undefined) return known
  const light = coloursOn(backgrounds.light, style)
  const dark = coloursOn(backgrounds.dark, style)
  const lines = [style.isUnderlined && 'underline', style.isStruck && 'line-through'].filter(
    (line) => line !== undefined,
  )
  const look: SpanLook = {
    ...(light.text && dark.text && { color: lightDark(light.text, dark.text) }),
    ...(light.ground && dark.ground && { backgroundColor: lightDark(light.ground, dark.ground) }),
    ...(style.isBold && { fontWeight: '700' }),
    ...(style.isItalic && { fontStyle: 'italic' }),
    ...(lines.length > 0 && { textDecoration: lines.join(' ') }),
  }
  looks.set(style, look)
  return look
}

/** What is undefined is as the style sheet says. */
export function coloursOn(on: Ground, style: TextStyle): { text: Rgb | undefined; ground: Rgb | undefined } {
  const { foreground, background, isInverse, isDim } = style
  let text = foreground === undefined ? undefined : rgbOf(foreground)
  let ground = background === undefined ? undefined : rgbOf(background)
  if (isInverse) [text, ground] = [ground ?? on.ground, text ?? on.text]
  if (isDim) text = mixed(text ?? on.text, ground ?? on.ground, DIM_SHARE)
  if (text === undefined && ground === undefined) return { text, ground }
  return { text: readable(text ?? on.text, ground ?? on.ground), ground }
}

/** The colour, or the nearest to it that can be read on a ground. */
export function readable(colour: Rgb, ground: Rgb): Rgb {
  if (contrast(colour, ground) >= CONTRAST) return colour
  const [black, white]: [Rgb, Rgb] = [
    [0, 0, 0],
    [255, 255, 255],
  ]
  const towards = contrast(black, ground) > contrast(white, ground) ? black : white
  for (let share = 0.1; share < 1; share += 0.1) {
    const nearer = mixed(colour, towards, share)
    if (contrast(nearer, ground) >= CONTRAST) return nearer
  }
  return towards
}

/** As WCAG 2 defines it, 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (high + 0.05) / (low + 0.05)
}

function luminance([red, green, blue]: Rgb): number {
  const linear = (value: number): number => {
    const share = value / 255
    return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

function mixed(colour: Rgb, other: Rgb, share: number): Rgb {
  const mix = (i: 0 | 1 | 2): number => Math.round(colour[i] * (1 - share) + other[i] * share)
  return [mix(0), mix(1), mix(2)]
}

function lightDark(light: Rgb, dark: Rgb): string {
  return `light-dark(rgb(${light.join(' ')}), rgb(${dark.join(' ')}))`
}
