/** How senders to a webhook prove that a request is theirs, in words and as lines for a shell. */
import type { SignatureParameters } from '../../api/records.ts'
import { isPlain, plainJson, quote } from '../../shell.ts'
import type { ExampleRequest } from './example.ts'

interface SchemeText {
  title: string
  /** For `Senders …`. */
  text: string
}

const schemeTexts: Record<SignatureParameters['scheme'], SchemeText> = {
  github: {
    title: 'GitHub signature',
    text: 'sign the body like GitHub (X-Hub-Signature-256), Gitea, Forgejo or Gogs.',
  },
  gitlab: {
    title: 'GitLab token',
    text: 'send the secret like GitLab: X-Gitlab-Token. A secret that begins with whsec_ signs instead.',
  },
  stripe: { title: 'Stripe signature', text: 'sign the body and the time like Stripe.' },
  slack: { title: 'Slack signature', text: 'sign the body and the time like Slack: X-Slack-Signature.' },
  zoom: { title: 'Zoom signature', text: 'sign the body and the time like Zoom: X-Zm-Signature.' },
  standard: {
    title: 'Standard Webhooks signature',
    text: 'sign the id, the time and the body by Standard Webhooks: webhook-signature, or svix-signature.',
  },
  sns: { title: 'Amazon SNS signature', text: 'are topics of Amazon SNS, which signs with its certificates.' },
  hmac: { title: 'HMAC signature', text: 'sign by the scheme of the rule.' },
}

export function authenticationTitle(signature: SignatureParameters | undefined, hasLogin: boolean): string {
  if (signature !== undefined) {
    const { scheme, header } = signature
    // A webhook may have several of one's own.
    return `${schemeTexts[scheme].title}${header === undefined ? '' : ` in ${header}`}`
  }
  return hasLogin ? 'API key or token' : 'No authentication'
}

export function authenticationText(signature: SignatureParameters | undefined, hasLogin: boolean): string {
  if (signature === undefined) {
    return hasLogin
      ? 'Senders need an API key or a token.'
      : 'Authentication is off: everybody who reaches this server may send.'
  }
  if (signature.scheme !== 'hmac') {
    const times = ['stripe', 'slack', 'zoom', 'standard', 'sns'].includes(signature.scheme)
      ? toleranceOf(signature)
      : ''
    return `Senders ${schemeTexts[signature.scheme].text}${times}`
  }
  const { header = '', algorithm = 'sha256', encoding = 'hex', prefix = '', template = '{body}' } = signature
  return [
    `Senders sign ${template} with ${algorithm}, and send it as ${encoding} in the header ${header}`,
    prefix === '' ? '.' : `, after ${prefix}.`,
    signature.timestamp_header === undefined ? '' : ` The time is in ${signature.timestamp_header}.`,
    signature.id_header === undefined ? '' : ` The id of the delivery is in ${signature.id_header}.`,
    signature.timestamp_header === undefined ? '' : toleranceOf(signature),
  ].join('')
}

function toleranceOf({
  scheme,
  tolerance_seconds: seconds = scheme === 'sns' ? 7200 : 300,
}: SignatureParameters): string {
  return ` svc refuses a time more than ${seconds} s from its own.`
}

export interface Sample extends ExampleRequest {
  address: string
  /** Whether senders need an API key where they do not sign. */
  hasLogin: boolean
}

export interface Recipe {
  /** Tells it from others, when there is more than one way. */
  title: string
  text: string
  /** Variables that have to be set before, and to what. */
  variables: readonly (readonly [name: string, meaning: string])[]
}

const BODY = '"$BODY"'
const secret = ['SECRET', 'the secret that the webhook shares with its senders'] as const
const apiKey = ['SVC_API_KEY', 'an API key with permission to send to it'] as const

/** Lines for a shell of POSIX with curl and openssl. None, where they could not be pasted safely, and where only the sender can sign. */
export function recipesOf(signature: SignatureParameters | undefined, sample: Sample): Recipe[] {
  if (signature === undefined) {
    const credential = sample.hasLogin ? ['"Svc-Api-Key: $SVC_API_KEY"'] : []
    const text = curl(sample, credential, quote(plainJson(sample.body)))
    return [
      { title: authenticationTitle(undefined, sample.hasLogin), text, variables: sample.hasLogin ? [apiKey] : [] },
    ]
  }
  const signed = (title: string, lines: readonly string[], headers: readonly string[]): Recipe => ({
    title,
    text: [`BODY=${quote(plainJson(sample.body))}`, ...lines, curl(sample, headers, BODY)].join('\n'),
    variables: [secret],
  })
  switch (signature.scheme) {
    case 'github':
      return [signed('GitHub', [signatureLine(BODY)], ['"X-Hub-Signature-256: sha256=$SIGNATURE"'])]
    case 'gitlab':
      return [
        signed('GitLab, with the secret as a token', [], ['"X-Gitlab-Token: $SECRET"']),
        standardRecipe('GitLab, with a secret that begins with whsec_', signed),
      ]
    case 'stripe':
      return [
        signed(
          'Stripe',
          [TIME, signatureLine('"$TIME.$BODY"')],
          [`${quote(`${signature.header ?? 'Stripe-Signature'}: t=`)}"$TIME,v1=$SIGNATURE"`],
        ),
      ]
    case 'slack':
      return [slackRecipe('Slack', 'X-Slack', signed)]
    case 'zoom':
      return [slackRecipe('Zoom', 'X-Zm', signed)]
    case 'standard':
      return [standardRecipe('Standard Webhooks', signed)]
    case 'sns':
      // Only Amazon has the key.
      return []
    case 'hmac':
      return hmacRecipe(signature, signed)
  }
}

type Signed = (title: string, lines: readonly string[], headers: readonly string[]) => Recipe

const TIME = 'TIME=$(date +%s)'
const TO_HEX = "sed 's/.* //'"
const TO_BASE64 = 'openssl base64 -A'

/** @param word of the shell: what is signed */
function signatureLine(
  word: string,
  algorithm = 'sha256',
  encoding: 'hex' | 'base64' = 'hex',
  key = '-hmac "$SECRET"',
) {
  const [binary, encode] = encoding === 'hex' ? ['', TO_HEX] : [' -binary', TO_BASE64]
  return `SIGNATURE=$(printf %s ${word} | openssl dgst -${algorithm} ${key}${binary} | ${encode})`
}

function slackRecipe(title: string, prefix: string, signed: Signed): Recipe {
  return signed(
    title,
    [TIME, signatureLine('"v0:$TIME:$BODY"')],
    [`"${prefix}-Request-Timestamp: $TIME"`, `"${prefix}-Signature: v0=$SIGNATURE"`],
  )
}

function standardRecipe(title: string, signed: Signed): Recipe {
  return signed(
    title,
    [
      'ID=msg_$(openssl rand -hex 12)',
      TIME,
      'KEY=$(printf %s "${SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d " \\n")',
      signatureLine('"$ID.$TIME.$BODY"', 'sha256', 'base64', '-mac HMAC -macopt "hexkey:$KEY"'),
    ],
    ['"webhook-id: $ID"', '"webhook-timestamp: $TIME"', '"webhook-signature: v1,$SIGNATURE"'],
  )
}

function hmacRecipe(signature: SignatureParameters, signed: Signed): Recipe[] {
  const { header = '', algorithm, encoding, prefix = '', template = '{body}' } = signature
  const { timestamp_header: timeHeader, id_header: idHeader } = signature
  if (!isPlain(prefix) || !isPlain(template)) return []
  const variables: Readonly<Record<string, string>> = { '{body}': BODY, '{timestamp}': '"$TIME"', '{id}': '"$ID"' }
  const word = template
    .split(/(\{(?:body|timestamp|id)\})/)
    .filter((part) => part !== '')
    .map((part) => variables[part] ?? quote(part))
    .join('')
  const lines = [
    ...(idHeader === undefined ? [] : ['ID=$(openssl rand -hex 12)']),
    ...(timeHeader === undefined ? [] : [TIME]),
    signatureLine(word, algorithm, encoding),
  ]
  const headers = [
    ...(idHeader === undefined ? [] : [`${quote(`${idHeader}: `)}"$ID"`]),
    ...(timeHeader === undefined ? [] : [`${quote(`${timeHeader}: `)}"$TIME"`]),
    `${quote(`${header}: ${prefix}`)}"$SIGNATURE"`,
  ]
  return [signed(authenticationTitle(signature, true), lines, headers)]
}

/** @param headers, @param body words of the shell */
function curl({ address, headers: example }: Sample, headers: readonly string[], body: string): string {
  const all = ["'Content-Type: application/json'", ...example.map((pair) => quote(pair.join(': '))), ...headers]
  return [`curl -i ${quote(address)}`, ...all.map((header) => `-H ${header}`), `--data-raw ${body}`].join(' \\\n  ')
}
