/** Ntfy: the server at ntfy.sh, or an own one. */
import { UrlProblem, originOf, postJson, textIn, type Channel, type Level, type Notice } from './channel.ts'
import { cut, plainBody } from './text.ts'

const PUBLIC_SERVER = 'https://ntfy.sh'
/** The server takes 4096 bytes; the rest would become an attachment. */
const MAX_MESSAGE_BYTES = 3900

const priorities: Readonly<Record<Level, number>> = { error: 4, warning: 4, success: 3, info: 3 }
const tags: Readonly<Record<Level, string>> = {
  error: 'rotating_light',
  warning: 'warning',
  success: 'white_check_mark',
  info: 'information_source',
}

export const ntfy: Channel = {
  kind: 'ntfy',
  settings: {
    topic: { type: 'string', minLength: 1, description: 'On the public server it is like a password.' },
    server: { type: 'string', minLength: 1, description: `Default: ${PUBLIC_SERVER}` },
    token: { type: 'string', minLength: 1, description: 'Access token.' },
    user: { type: 'string', minLength: 1, description: 'Instead of a token, with `password`.' },
    password: { type: 'string', minLength: 1 },
    priority: { type: 'integer', minimum: 1, maximum: 5, description: 'Default: 4 for failures, else 3.' },
  },
  required: ['topic'],
  secrets: ['topic', 'token', 'password'],
  schemes: ['ntfy', 'ntfys'],
  fromUrl(url) {
    const { host, path, user, password, query, scheme } = url
    const credentials = {
      ...(password === '' ? {} : { user, password }),
      ...(password === '' && user.startsWith('tk_') ? { token: user } : {}),
      ...(query.has('token') ? { token: query.get('token') ?? '' } : {}),
    }
    const [topic] = path
    if (topic !== undefined) return { server: originOf(url, scheme === 'ntfys'), topic, ...credentials }
    if (host === '') throw new UrlProblem('must be ntfy://TOPIC or ntfys://HOST/TOPIC')
    return { topic: host, ...credentials }
  },
  isDigested: true,
  async send(notice, settings, tools) {
    const server = textIn(settings, 'server').replace(/\/+$/, '') || PUBLIC_SERVER
    await postJson(tools, `${server}/`, payload(notice, settings), authorization(settings))
    return 'published'
  },
}

/** As JSON to the root of the server, so that no text can become a header. */
function payload(notice: Notice, settings: Settings): unknown {
  const { title, level, link } = notice
  const priority = settings['priority']
  let message = plainBody({ ...notice, link: '' })
  while (Buffer.byteLength(message) > MAX_MESSAGE_BYTES) message = cut(message, Math.floor(message.length * 0.8))
  return {
    topic: textIn(settings, 'topic'),
    title: cut(title, 250),
    message: message === '' ? title : message,
    priority: typeof priority === 'number' ? priority : priorities[level],
    tags: [tags[level]],
    ...(link === '' ? {} : { click: link }),
  }
}

type Settings = Parameters<Channel['send']>[1]

function authorization(settings: Settings): Record<string, string> {
  const [token, user, password] = [textIn(settings, 'token'), textIn(settings, 'user'), textIn(settings, 'password')]
  if (token !== '') return { authorization: `Bearer ${token}` }
  if (user === '') return {}
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
}
