import { BackendProblem } from '../backend.ts'
import { shown } from '../../../../lib/text/index.ts'
import { writeJson } from '../../../../lib/json/index.ts'

export interface ClientSettings {
  networkTimeoutSeconds?: number
  timeoutSeconds?: number
  referrals?: boolean
  derefAliases: 'never' | 'search' | 'find' | 'always'
  /** Whether server certificates are verified. Absent: only if CA certificates are set. */
  isVerified?: boolean
  caFile?: string
  minVersion: 'TLSv1.2' | 'TLSv1.3'
}

interface ClientOption {
  /** Name in the library without its prefix. */
  name: string
  /** Valid values, for error messages. */
  values: string
  /** @returns undefined if the value is invalid */
  read(value: unknown): Partial<ClientSettings> | undefined
}

const MAX_SECONDS = 300

const aliases = ['never', 'search', 'find', 'always'] as const

function choose(name: string, choices: Readonly<Record<number, Partial<ClientSettings>>>): ClientOption {
  const values = Object.keys(choices).join(', ')
  return {
    name,
    values: `one of ${values}`,
    // Some languages write true for 1.
    read: (value) => choices[typeof value === 'number' ? value : typeof value === 'boolean' ? Number(value) : NaN],
  }
}

function seconds(name: string, read: (seconds: number) => Partial<ClientSettings>): ClientOption {
  return {
    name,
    values: `seconds above 0, at most ${MAX_SECONDS}`,
    read: (value) => (typeof value === 'number' && value > 0 && value <= MAX_SECONDS ? read(value) : undefined),
  }
}

const known: Readonly<Record<string, ClientOption>> = {
  2: choose('DEREF', Object.fromEntries(aliases.map((derefAliases, number) => [number, { derefAliases }]))),
  8: choose('REFERRALS', { 0: { referrals: false }, 1: { referrals: true } }),
  17: choose('PROTOCOL_VERSION', { 3: {} }),
  20482: seconds('TIMEOUT', (timeoutSeconds) => ({ timeoutSeconds })),
  20485: seconds('NETWORK_TIMEOUT', (networkTimeoutSeconds) => ({ networkTimeoutSeconds })),
  24578: {
    name: 'X_TLS_CACERTFILE',
    values: 'the path of a file',
    read: (value) =>
      typeof value === 'string' && value !== '' && !value.includes('\0') ? { caFile: value } : undefined,
  },
  // never, hard, demand, allow, try: "try" refuses a bad certificate, and a server always has one
  24582: choose('X_TLS_REQUIRE_CERT', {
    0: { isVerified: false },
    1: { isVerified: true },
    2: { isVerified: true },
    3: { isVerified: false },
    4: { isVerified: true },
  }),
  24583: choose('X_TLS_PROTOCOL_MIN', { 771: { minVersion: 'TLSv1.2' }, 772: { minVersion: 'TLSv1.3' } }),
  // Requests that other TLS options take effect, which they always do.
  24591: choose('X_TLS_NEWCTX', { 0: {} }),
}

/** @throws BackendProblem */
export function readClientOptions(value: unknown): ClientSettings {
  const settings: ClientSettings = { derefAliases: 'never', minVersion: 'TLSv1.2' }
  if (value === undefined) return settings
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new BackendProblem('auth.backend_kwargs: client_options must be an object such as {"20485": 5}')
  }
  for (const [number, given] of Object.entries(value)) {
    const option = Object.hasOwn(known, number) ? known[number] : undefined
    if (option === undefined) {
      const list = Object.entries(known).map(([code, { name }]) => `${code} (${name})`)
      throw new BackendProblem(
        `auth.backend_kwargs: client_options ${writeJson(shown(number))} is not supported; supported: ${list.join(', ')}`,
      )
    }
    const read = option.read(given)
    if (read === undefined) {
      throw new BackendProblem(
        `auth.backend_kwargs: client_options ${number} (${option.name}) must be ${option.values}`,
      )
    }
    Object.assign(settings, read)
  }
  return settings
}
