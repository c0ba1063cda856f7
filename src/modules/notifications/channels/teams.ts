/** Microsoft Teams: the webhook of a workflow ("Send webhook alerts to a channel"), with an adaptive card. */
import { UrlProblem, originOf, postJson, textIn, type Channel, type Level, type Notice } from './channel.ts'
import { cut, cutStart } from './text.ts'

/** A message may have 28 KB. */
const MAX_TEXT_CHARS = 6000

const colors: Readonly<Record<Level, string>> = {
  error: 'Attention',
  warning: 'Warning',
  success: 'Good',
  info: 'Default',
}

export const teams: Channel = {
  kind: 'teams',
  settings: {
    webhook_url: { type: 'string', minLength: 1, description: 'Address of the webhook of the workflow.' },
  },
  required: ['webhook_url'],
  secrets: ['webhook_url'],
  schemes: ['workflow', 'workflows'],
  fromUrl(url) {
    const [workflow, signature] = url.path
    if (workflow === undefined || signature === undefined) {
      throw new UrlProblem('must be workflows://HOST:PORT/WORKFLOW/SIGNATURE')
    }
    const query = new URLSearchParams({
      'api-version': url.query.get('ver') ?? '2016-06-01',
      sp: '/triggers/manual/run',
      sv: '1.0',
      sig: signature,
    })
    const path = `/workflows/${encodeURIComponent(workflow)}/triggers/manual/paths/invoke`
    return { webhook_url: `${originOf(url, true)}${path}?${query.toString()}` }
  },
  isDigested: true,
  async send(notice, settings, tools) {
    await postJson(tools, textIn(settings, 'webhook_url'), payload(notice))
    return 'accepted'
  },
}

function payload({ level, title, text, facts, output, link }: Notice): unknown {
  // Text runs, because text blocks and fact sets read Markdown.
  const run = (value: string, more: Record<string, unknown> = {}) => ({ type: 'TextRun', text: value, ...more })
  const lines = (...inlines: unknown[]) => ({ type: 'RichTextBlock', inlines })
  const body: unknown[] = [
    lines(run(cut(title, 300), { weight: 'Bolder', size: 'Medium', color: colors[level] })),
    ...(text === '' ? facts : []).map(([label, value]) =>
      lines(run(`${label}: `, { weight: 'Bolder' }), run(cut(value, 1000))),
    ),
  ]
  if (text !== '') body.push(lines(run(cut(text, MAX_TEXT_CHARS))))
  else if (output !== '') body.push(lines(run(cutStart(output, MAX_TEXT_CHARS), { fontType: 'Monospace' })))
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body,
          ...(link === '' ? {} : { actions: [{ type: 'Action.OpenUrl', title: 'Open in svc', url: link }] }),
        },
      },
    ],
  }
}
