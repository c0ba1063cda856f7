import { expect, it } from 'vitest'
import { problemOfPip } from './pip-problem.ts'

const retries = (cause: string, path = '/simple/six/'): string[] =>
  [4, 3, 2, 1, 0].map(
    (total) =>
      `WARNING: Retrying (Retry(total=${total}, connect=None, read=None, redirect=None, status=None)) after connection broken by '${cause}': ${path}`,
  )
const unknownHost = (at: string): string =>
  `NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at ${at}>: Failed to establish a new connection: [Errno -2] Name or service not known')`

it.each<[string, string[], string]>([
  [
    'a host that is unknown is named once',
    [
      'Looking in indexes: https://pypi.org/simple',
      "WARNING: Location 'file:///opt/pypi/simple/six/' is ignored: it is neither a file nor a directory.",
      ...retries(unknownHost('0x7f51393c4c10')).slice(0, 2),
      ...retries(unknownHost('0x7f51393c56d0')).slice(2),
      'ERROR: Could not find a version that satisfies the requirement six (from versions: none)',
      'ERROR: No matching distribution found for six',
    ],
    `No connection for /simple/six/: NewConnectionError('Failed to establish a new connection: [Errno -2] Name or service not known')
ERROR: Could not find a version that satisfies the requirement six (from versions: none)
ERROR: No matching distribution found for six`,
  ],
  [
    'a timeout too',
    [
      'Collecting six',
      ...retries(
        `ReadTimeoutError("HTTPSConnectionPool(host='pypi.org', port=443): Read timed out. (read timeout=15)")`,
      ),
      'ERROR: No matching distribution found for six',
    ],
    `No connection for /simple/six/: ReadTimeoutError("HTTPSConnectionPool(host='pypi.org', port=443): Read timed out. (read timeout=15)")
ERROR: No matching distribution found for six`,
  ],
  [
    'of many packages, three',
    ['a', 'b', 'c', 'd'].flatMap((name) => retries('ProxyError()', `/simple/${name}/`)),
    ['a', 'b', 'c'].map((name) => `No connection for /simple/${name}/: ProxyError()`).join('\n'),
  ],
  [
    'what a program says that pip runs stays, its progress does not',
    [
      'Collecting git+https://host.invalid/x.git',
      '  Running command git clone --quiet https://host.invalid/x.git /tmp/x',
      "  fatal: unable to access 'https://host.invalid/x.git/': Could not resolve host: host.invalid",
      'error: subprocess-exited-with-error',
    ],
    `Running command git clone --quiet https://host.invalid/x.git /tmp/x
  fatal: unable to access 'https://host.invalid/x.git/': Could not resolve host: host.invalid
error: subprocess-exited-with-error`,
  ],
  [
    'progress alone is better than nothing',
    ['Collecting six', '  Downloading six.whl'],
    'Collecting six\n  Downloading six.whl',
  ],
  ['nothing', [''], ''],
])('%s', (_, lines, expected) => {
  expect(problemOfPip(lines.join('\n'))).toBe(expected)
})

it('a long line of openings takes no noticeable work', () => {
  const line = `WARNING: Retrying (${') after connection broken by '.repeat(20_000)}`
  expect(problemOfPip(line)).toBe(line.trim())
})
