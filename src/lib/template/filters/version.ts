import { textArgument } from '../arguments.ts'
import { filterError } from '../error.ts'
import { stringFilter, type TemplateFilter } from './filter.ts'

interface Version {
  major: bigint
  minor: bigint
  patch: bigint
  /** identifiers after `-`, empty for a release */
  prerelease: readonly string[]
}

const MAX_VERSION_LENGTH = 256
const versionPattern =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?$/

function parseVersion(text: string): Version {
  const match = text.length > MAX_VERSION_LENGTH ? null : versionPattern.exec(text)
  if (match === null) throw filterError('the text is not a semantic version such as 1.2.3')
  const [, major = '0', minor = '0', patch = '0', prerelease] = match
  return {
    major: BigInt(major),
    minor: BigInt(minor),
    patch: BigInt(patch),
    prerelease: prerelease === undefined ? [] : prerelease.split('.'),
  }
}

type Order = -1 | 0 | 1

function order<T extends bigint | number | string>(a: T, b: T): Order {
  if (a < b) return -1
  return a > b ? 1 : 0
}

function compareIdentifiers(a: string, b: string): Order {
  const [aNumber, bNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)]
  if (aNumber && bNumber) return order(BigInt(a), BigInt(b))
  if (aNumber !== bNumber) return aNumber ? -1 : 1
  return order(a, b)
}

/** Precedence of semantic versioning 2.0.0. */
function compareVersions(left: string, right: string): Order {
  const [a, b] = [parseVersion(left), parseVersion(right)]
  const release = order(a.major, b.major) || order(a.minor, b.minor) || order(a.patch, b.patch)
  if (release !== 0) return release
  if (a.prerelease.length === 0 || b.prerelease.length === 0) {
    return order(Number(a.prerelease.length === 0), Number(b.prerelease.length === 0))
  }
  for (const [index, identifier] of a.prerelease.entries()) {
    const other = b.prerelease[index]
    if (other === undefined) return 1
    const result = compareIdentifiers(identifier, other)
    if (result !== 0) return result
  }
  return order(a.prerelease.length, b.prerelease.length)
}

/** Whether a version fits one comparison, such as `>=1.2.0`; without an operator it has to be the same. @throws TemplateError */
export function versionMatches(version: string, expression: string): boolean {
  const match = /^\s*(<=|>=|==|!=|<|>)?\s*(\S+)\s*$/.exec(expression.slice(0, MAX_VERSION_LENGTH))
  const result = compareVersions(version, match?.[2] ?? '')
  switch (match?.[1]) {
    case '<':
      return result < 0
    case '<=':
      return result <= 0
    case '>':
      return result > 0
    case '>=':
      return result >= 0
    case '!=':
      return result !== 0
    default:
      return result === 0
  }
}

/** Filters over semantic versions. */
export const versionFilters: readonly [string, TemplateFilter][] = [
  stringFilter('version_compare', 'pattern', (text, [other]) =>
    compareVersions(text, textArgument('version_compare', other)),
  ),
  stringFilter(
    'version_more_than',
    'pattern',
    (text, [other]) => compareVersions(text, textArgument('version_more_than', other)) > 0,
  ),
  stringFilter(
    'version_less_than',
    'pattern',
    (text, [other]) => compareVersions(text, textArgument('version_less_than', other)) < 0,
  ),
  stringFilter(
    'version_equal',
    'pattern',
    (text, [other]) => compareVersions(text, textArgument('version_equal', other)) === 0,
  ),
  stringFilter('version_match', 'pattern', (text, [pattern]) =>
    versionMatches(text, textArgument('version_match', pattern)),
  ),
  stringFilter('version_bump_major', '', (text) => `${parseVersion(text).major + 1n}.0.0`),
  stringFilter('version_bump_minor', '', (text) => {
    const { major, minor } = parseVersion(text)
    return `${major}.${minor + 1n}.0`
  }),
  stringFilter('version_bump_patch', '', (text) => {
    const { major, minor, patch } = parseVersion(text)
    return `${major}.${minor}.${patch + 1n}`
  }),
  stringFilter('version_strip_patch', '', (text) => {
    const { major, minor } = parseVersion(text)
    return `${major}.${minor}`
  }),
]
