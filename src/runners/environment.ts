/** Builds a child's environment (contract 03, 3.7): a part of the server's, then parameter `env`, then the execution's. */
import { writeJson } from '../lib/json/index.ts'

/** Configuration overrides (`SVC_<SECTION>__<OPTION>`), some of them secrets, that only the server may see. */
const configurationPattern = /^SVC_[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*?__/

/**
 * The part of the server's environment that children inherit. Computed once, because each read of `process.env` queries
 * the system.
 */
export function inheritedEnvironment(source: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const inherited: Record<string, string> = {}
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && !configurationPattern.test(name)) inherited[name] = value
  }
  // With these variables and no parent shell bash assumes that sshd started it, and sources ~/.bashrc (trap B).
  const cameBySsh = inherited['SSH_CLIENT'] !== undefined || inherited['SSH2_CLIENT'] !== undefined
  if (cameBySsh && !(Number(inherited['SHLVL']) >= 1)) inherited['SHLVL'] = '1'
  return inherited
}

/** Variables of the server that every action gets: account, language, time zone, temporary folder, proxies, trusted CAs. */
const basicVariables: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'SHLVL',
  'TERM',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TZDIR',
  'TMPDIR',
  'http_proxy',
  'https_proxy',
  'ftp_proxy',
  'all_proxy',
  'no_proxy',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'FTP_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'NODE_EXTRA_CA_CERTS',
])

/**
 * The part of the inherited environment that actions get.
 *
 * @param passed `actionrunner.pass_environment`: further names; a star at the end stands for any characters
 */
export function actionEnvironment(
  inherited: Readonly<Record<string, string>>,
  passed: readonly string[],
): Record<string, string> {
  const isPassed = (name: string): boolean =>
    basicVariables.has(name) ||
    name.startsWith('LC_') ||
    passed.some((given) => (given.endsWith('*') ? name.startsWith(given.slice(0, -1)) : name === given))
  return Object.fromEntries(Object.entries(inherited).filter(([name]) => isPassed(name)))
}

/** Text of a value used as a variable: scalars as templates print them (decision 20), containers as JSON. */
export function environmentText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return writeJson(value)
}

export function childEnvironment(
  inherited: Readonly<Record<string, string>>,
  given: Readonly<Record<string, unknown>> | undefined,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  if (given === undefined) return { ...inherited, ...own }
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) texts[name] = environmentText(value)
  return { ...inherited, ...texts, ...own }
}
