import { describe, expect, test } from 'vitest'
import { normaliseDn } from './dn.ts'

const group = 'cn=ops,ou=groups,dc=example,dc=org'

describe('normaliseDn', () => {
  test.each([
    ['letter case', 'CN=Ops,OU=Groups,DC=Example,DC=ORG', group],
    ['blanks round separators', ' cn = ops , ou= groups ,dc =example,  dc=org ', group],
    ['semicolons', 'cn=ops;ou=groups;dc=example;dc=org', group],
    ['blanks inside of values', 'cn=night   shift,dc=org', 'cn=night shift,dc=org'],
    ['escaped blanks at the ends', 'cn=\\20ops\\ ,dc=org', 'cn=ops,dc=org'],
    ['escapes of the same comma', 'cn=a\\2Cb,dc=org', 'cn=a\\,b,dc=org'],
    ['quoted values', 'cn="a,b",dc=org', 'cn=a\\,b,dc=org'],
    ['escaped bytes of UTF-8', 'cn=J\\C3\\B6rg,dc=org', 'cn=jörg,dc=org'],
    ['composed and decomposed letters', 'cn=jo\u0308rg,dc=org', 'cn=j\u00f6rg,dc=org'],
    ['the order of a multi-valued part', 'uid=1+CN=ops,dc=org', 'cn=ops+uid=1,dc=org'],
    ['an unescaped equals sign', 'cn=a=b,dc=org', 'cn=a\\=b,dc=org'],
    ['hexadecimal values', 'cn=#04024A4B,dc=org', 'cn=#04024a4b,dc=org'],
    ['types by number', '2.5.4.3=Ops,dc=org', '2.5.4.3=ops,dc=org'],
  ])('takes %s for the same name', (_, one, other) => {
    expect(normaliseDn(one)).toBeDefined()
    expect(normaliseDn(one)).toBe(normaliseDn(other))
  })

  test.each([
    ['a part more', 'cn=ops,dc=org', 'cn=ops,ou=x,dc=org'],
    ['another order', 'cn=ops,ou=x,dc=org', 'ou=x,cn=ops,dc=org'],
    ['another type', 'cn=ops,dc=org', 'ou=ops,dc=org'],
    ['a comma that belongs to a value', 'cn=a\\,ou=b,dc=org', 'cn=a,ou=b,dc=org'],
    ['a plus that belongs to a value', 'cn=a\\+ou=b,dc=org', 'cn=a+ou=b,dc=org'],
    ['a backslash that belongs to a value', 'cn=a\\\\\\,ou=b,dc=org', 'cn=a\\\\,ou=b,dc=org'],
  ])('tells names with %s apart', (_, one, other) => {
    expect(normaliseDn(one)).toBeDefined()
    expect(normaliseDn(other)).toBeDefined()
    expect(normaliseDn(one)).not.toBe(normaliseDn(other))
  })

  test.each([
    '',
    ' ',
    'ops',
    '=ops',
    'cn',
    'cn=ops,',
    ',cn=ops',
    'cn=ops,,dc=org',
    'cn="ops,dc=org',
    'cn=a"b',
    'cn=a\\',
  ])('%j is no name', (text) => {
    expect(normaliseDn(text)).toBeUndefined()
  })
})
