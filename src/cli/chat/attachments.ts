/** What an alias or an announcement has besides its text (`extra`): attachments, as Slack and Mattermost show them. */
import { isObject } from '../../lib/schema/index.ts'

/** Part of a post with a colour, a title, fields. Absent: it has none. */
export type Attachment = Partial<Record<TextName | LinkName, string>> & {
  fields?: { title: string; value: string; short: boolean }[]
}

const textNames = ['color', 'fallback', 'pretext', 'author_name', 'title', 'text', 'footer', 'ts'] as const
const linkNames = ['author_link', 'author_icon', 'title_link', 'image_url', 'thumb_url', 'footer_icon'] as const
type TextName = (typeof textNames)[number]
type LinkName = (typeof linkNames)[number]

const MAX_ATTACHMENTS = 10
const MAX_FIELDS = 20
/** UTF-16 units of one text, and of all. */
const MAX_CHARS = 3_000
const MAX_ALL_CHARS = 16_000

/**
 * Attachments in `extra`: what it has under the name of the chat system, else itself. A list `attachments`, or the
 * attributes of one. What is no attribute of an attachment is left out.
 */
export function attachmentsIn(extra: unknown, adapter: string): Attachment[] {
  if (!isObject(extra)) return []
  const own = isObject(extra[adapter]) ? extra[adapter] : extra
  const given = Array.isArray(own['attachments']) ? own['attachments'] : [own]
  let left = MAX_ALL_CHARS
  const textIn = (value: unknown): string => {
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return ''
    const text = String(value)
      .slice(0, Math.min(MAX_CHARS, left))
      .replace(/[\uD800-\uDBFF]$/, '')
    left -= text.length
    return text
  }
  return given
    .slice(0, MAX_ATTACHMENTS)
    .map((one) => (isObject(one) ? attachmentIn(one, textIn) : {}))
    .filter((one) => Object.keys(one).length > 0)
}

function attachmentIn(given: Record<string, unknown>, textIn: (value: unknown) => string): Attachment {
  const attachment: Attachment = {}
  for (const name of textNames) {
    const text = textIn(given[name])
    if (text !== '') attachment[name] = text
  }
  for (const name of linkNames) {
    const link = textIn(given[name])
    if (/^https?:\/\/[^\s<>|"]+$/.test(link)) attachment[name] = link
  }
  const { fields } = given
  if (Array.isArray(fields)) {
    attachment.fields = fields
      .slice(0, MAX_FIELDS)
      .filter((field) => isObject(field))
      .map((field) => ({
        title: textIn(field['title']),
        value: textIn(field['value']),
        short: field['short'] === true,
      }))
  }
  return attachment
}

/** For Slack and Mattermost: the text of the post is in the first attachment, unless that has a text of its own. */
export function placeText(
  text: string,
  [first, ...others]: readonly Attachment[],
): {
  text: string
  attachments: Attachment[]
} {
  if (first === undefined) return { text, attachments: [] }
  const all = [first.text === undefined ? { ...first, text } : first, ...others]
  return {
    text: first.text === undefined ? '' : text,
    // Shown where attachments are not, such as in the notice of a telephone.
    attachments: all.map((one) => ({ ...one, fallback: one.fallback ?? one.text ?? one.title ?? text })),
  }
}

/** With every text that people read changed; links and the colour stay. */
export function mapTexts(attachment: Attachment, change: (text: string) => string): Attachment {
  const changed: Attachment = { ...attachment }
  for (const name of ['fallback', 'pretext', 'author_name', 'title', 'text', 'footer'] as const) {
    if (changed[name] !== undefined) changed[name] = change(changed[name])
  }
  if (changed.fields !== undefined) {
    changed.fields = changed.fields.map(({ title, value, short }) => ({
      title: change(title),
      value: change(value),
      short,
    }))
  }
  return changed
}

/** For chats without attachments: lines below the text of the post. */
export function textOf(attachments: readonly Attachment[]): string {
  return attachments
    .flatMap(
      ({ pretext, author_name: author, title, title_link: link, text, fields = [], image_url: image, footer }) => [
        pretext,
        author,
        title === undefined || link === undefined ? (title ?? link) : `${title} ${link}`,
        text,
        ...fields.map((field) => `${field.title}: ${field.value}`),
        image,
        footer,
      ],
    )
    .filter((line) => line !== undefined && line !== '')
    .join('\n')
}
