/** Texts for formats: cutting and escaping. Names of rules and output of commands are of anybody's making. */
import type { Notice } from './channel.ts'

/** Cut at a character boundary, with `…`. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  const end = max - 1
  return `${text.slice(0, /[\uD800-\uDBFF]/.test(text[end - 1] ?? '') ? end - 1 : end)}…`
}

/** The end of a text, which is what matters of output. */
export function cutStart(text: string, max: number): string {
  if (text.length <= max) return text
  const start = text.length - max + 1
  return `…${text.slice(/[\uDC00-\uDFFF]/.test(text[start] ?? '') ? start + 1 : start)}`
}

/** Without control characters, those that change the direction of text among them, on one line. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim()

/** Lines without other control characters. */
export const plainLines = (text: string): string =>
  text.replace(/\r\n?/g, '\n').replace(/[^\n\t\P{Cc}]|\p{Cf}|\p{Zl}|\p{Zp}/gu, '')

/** Text that calls nobody. */
export const withoutMentions = (text: string): string => text.replaceAll('@', '@\u200B')

/** Markdown as Discord and Mattermost read it: no formatting, no links behind words, nobody is called. */
export const escapeMarkdown = (text: string): string => withoutMentions(text.replace(/[\\`*_~|[\]()<>#]/g, '\\$&'))

/** Text in a block of code that it cannot end. */
export const inCodeBlock = (text: string): string => `\`\`\`\n${withoutMentions(text.replaceAll('```', "'''"))}\n\`\`\``

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)

/** The whole message as plain text, without its title. */
export function plainBody({ text, facts, output, link }: Notice): string {
  const parts = [
    text === '' ? facts.map(([label, value]) => `${label}: ${value}`).join('\n') : text,
    text === '' ? output : '',
    link,
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}
