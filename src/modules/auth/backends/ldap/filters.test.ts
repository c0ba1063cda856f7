import { BerReader, BerWriter, FilterParser } from 'ldapts'
import { describe, expect, test } from 'vitest'
import { PatternProblem, compileFilter } from './filters.ts'
import { isPlainName, readUserNames } from './user-names.ts'

/** As a server reads the filter: through its bytes. */
function sent(pattern: string, values: { username?: string; user_dn?: string }): string {
  const writer = new BerWriter()
  compileFilter(pattern, ['username', 'user_dn']).fill(values).write(writer)
  return FilterParser.parse(new BerReader(writer.buffer)).toString()
}

describe('compileFilter', () => {
  test.each([
    ['uid={username}', '(uid=alice)'],
    ['(uid={{username}})', '(uid=alice)'],
    ['(&(objectClass=person)(uid={username}))', '(&(objectclass=person)(uid=alice))'],
    ['(|(uid={username})(mail={username}@example.org))', '(|(uid=alice)(mail=alice@example.org))'],
    ['(&(uid={username})(!(l=closed)))', '(&(uid=alice)(!(l=closed)))'],
    ['(mail={username}@*)', '(mail=alice@*)'],
    ['(&(uid={username})(uidNumber>=1000)(uidNumber<=2000))', '(&(uid=alice)(uidnumber>=1000)(uidnumber<=2000))'],
    ['(uid~={username})', '(uid~=alice)'],
    ['(uid:caseExactMatch:={username})', '(uid:caseExactMatch:=alice)'],
    ['(member:1.2.840.113556.1.4.1941:={user_dn})', '(member:1.2.840.113556.1.4.1941:=uid=alice,dc=org)'],
    ['(&(uid={username})(l=K\\c3\\b6ln))', '(&(uid=alice)(l=Köln))'],
    ['(&(uid={username})(l=\\28x\\29))', '(&(uid=alice)(l=\\28x\\29))'],
  ])('%s → %s', (pattern, expected) => {
    expect(sent(pattern, { username: 'alice', user_dn: 'uid=alice,dc=org' })).toBe(expected)
  })

  test.each([
    ['*', '(uid=\\2a)'],
    ['*)(uid=*', '(uid=\\2a\\29\\28uid=\\2a)'],
    ['alice)(|(uid=*', '(uid=alice\\29\\28|\\28uid=\\2a)'],
    ['\\', '(uid=\\5c)'],
    ['\\2a', '(uid=\\5c2a)'],
    ['a\0b', '(uid=a\\00b)'],
    ['{user_dn}', '(uid={user_dn})'],
    ['{{username}}', '(uid={{username}})'],
    ['$&', '(uid=$&)'],
    ['Zoë ☃', '(uid=Zoë ☃)'],
  ])('CVE-2026-38428 escape, injection: the name %j is one value', (username, expected) => {
    expect(sent('(uid={username})', { username, user_dn: 'uid=admin,dc=org' })).toBe(expected)
  })

  test.each([
    ['(uid={username}', 'parentheses do not match'],
    ['(&(uid={username})', 'parentheses do not match'],
    ['uid={username})', 'parentheses do not match'],
    ['(uid={username})(cn=x)', 'is not a search filter'],
    ['(&)', 'is not a search filter'],
    ['({username}=x)', 'is not a search filter'],
    ['(uid)', 'is not a search filter'],
    ['(uid={username}\\zz)', 'is not a search filter'],
    ['(uid={username}\\ff)', 'not UTF-8'],
    ['(uid={name})', 'has no placeholder {name}, only {username}'],
    ['(uid={user_dn})', 'has no placeholder {user_dn}, only {username}'],
    ['(uid=alice)', 'matches every user'],
    [`(uid={username}${'x'.repeat(5000)})`, 'longer than 4096 characters'],
  ])('refuses %s', (pattern, reason) => {
    expect(() => compileFilter(pattern, ['username'])).toThrow(PatternProblem)
    expect(() => compileFilter(pattern, ['username'])).toThrow(reason)
  })
})

describe('readUserNames', () => {
  const read = (pattern: string): ReturnType<typeof readUserNames> =>
    readUserNames(compileFilter(pattern, ['username']))

  test('asks for the attributes that hold the name, and for no others', () => {
    expect(read('(&(objectClass=person)(|(uid={username})(mail={username}@*)(uid={username})))').attributes).toEqual([
      'uid',
      'mail',
    ])
  })

  test.each([
    ['uid={username}', 'alice', ['alice'], true],
    ['uid={username}', 'ALICE', ['alice'], false],
    ['uid={username}', 'alice ', ['alice'], false],
    ['uid={username}', 'jose\u0301', ['jos\u00e9'], false],
    ['uid={username}', 'al', ['alice', 'al'], true],
    ['uid={username}', 'alice', [], false],
    ['mail={username}@example.org', 'alice', ['alice@example.org'], true],
    ['mail={username}@example.org', 'alice', ['alice'], false],
    ['mail={username}@example.org', 'Alice', ['alice@example.org'], false],
    ['mail={username}@*', 'alice', ['alice@example.org'], true],
    ['mail={username}@*', 'ali', ['alice@example.org'], false],
    ['cn=*x*y {username}', 'alice', ['ax by alice'], true],
    ['cn=*x*y {username}', 'alice', ['by ax alice'], false],
  ])('%s: %j stands for %j: %j', (pattern, user, values, expected) => {
    expect(read(pattern).stand(user, values)).toBe(expected)
  })

  test.each([
    ['(uid={username}*)', 'one user would have many names'],
    ['(uid=*{username})', 'one user would have many names'],
    ['(uid=*{username}*)', 'one user would have many names'],
    ['(!(uid={username}))', 'does not compare {username} with an attribute'],
    ['(uid>={username})', 'does not compare {username} with an attribute'],
  ])('refuses %s', (pattern, reason) => {
    expect(() => read(pattern)).toThrow(PatternProblem)
    expect(() => read(pattern)).toThrow(reason)
  })
})

describe('isPlainName', () => {
  test.each(['alice', 'alice@example.org', 'EXAMPLE\\alice', 'Alice Smith', 'Zoë', '*', '山田'])(
    '%j can be',
    (name) => {
      expect(isPlainName(name)).toBe(true)
    },
  )

  test.each(['', ' ', ' alice', 'alice ', 'alice\t', 'a  b', 'a\0b', 'a\nb', '\u00a0alice', 'a\ud800', 'a \u3000b'])(
    '%j cannot be',
    (name) => {
      expect(isPlainName(name)).toBe(false)
    },
  )
})
