/** What pip has printed, reduced to why it failed: the output of the execution has all of it. */

const retry = /^WARNING: Retrying \(.*\) after connection broken by '(.*)': (\/\S*)$/
/** The place of an object in memory, which urllib3 puts into its errors. */
const address = /<[\w.]+ object at 0x[0-9a-f]+>[:,]? ?/g
/** What it does, and where it looks. */
const progress =
  /^\s*(?:Looking in (?:indexes|links): |Collecting |Requirement already satisfied: |Downloading |Using cached |Obtaining |Processing |Preparing metadata |Installing (?:build dependencies|collected packages|backend dependencies)|Getting requirements to build |WARNING: Location '\S+' is ignored: |\[notice\] )/

const MAX_CONNECTIONS = 3

/**
 * @param text standard output and standard error of pip
 * @returns why it failed: each broken connection once, then what pip says besides its progress; all of it, if that is nothing
 */
export function problemOfPip(text: string): string {
  const broken = new Set<string>()
  const rest: string[] = []
  for (const line of text.split(/\r?\n/)) {
    const [, cause, path] = retry.exec(line) ?? []
    if (cause !== undefined) {
      if (broken.size < MAX_CONNECTIONS) broken.add(`No connection for ${path}: ${cause.replace(address, '')}`)
    } else if (!progress.test(line)) {
      rest.push(line.trimEnd())
    }
  }
  const said = [...broken, ...rest].join('\n').trim()
  return said === '' ? text.trim() : said
}
