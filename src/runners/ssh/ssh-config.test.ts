import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { readSshConfig, type HostSettings } from './ssh-config.ts'

const folder = makeFolder()
afterAll(() => folder.remove())

let number = 0
/** Writes files into a folder of their own, and reads the one named `config`. */
async function settingsOf(
  files: Record<string, string>,
  host: string,
  given: { user?: string; port?: number } = {},
): Promise<HostSettings & { root: string }> {
  const root = join(folder.path, String(++number))
  for (const [name, text] of Object.entries(files)) {
    const path = join(root, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text, { mode: 0o600 })
  }
  const config = await readSshConfig(join(root, 'config'))
  return { ...config.settingsOf(host, { user: given.user, port: given.port, defaultUser: 'system' }), root }
}
const none = { identityFiles: [], notFollowed: [], root: expect.any(String) }

test('the first value counts, in whatever form it is written', async () => {
  const config = `
# a comment
host Web* !web3
	HostName = "%h.example"   # where it is
	port=2222
Host *
  User 'deploy user'
  Port 22
  HostKeyAlias web
`
  const others = { ...none, user: 'deploy user', hostKeyAlias: 'web' }
  expect(await settingsOf({ config }, 'web1')).toEqual({ ...others, hostName: 'web1.example', port: 2222 })
  expect(await settingsOf({ config }, 'web3')).toEqual({ ...others, port: 22 })
  expect(await settingsOf({}, 'web1')).toEqual(none)
})

test('Include: several files, patterns, inside a block, in each other, missing ones', async () => {
  const files = {
    config: 'Include d/*.conf no/such/file\nHost inner\n  Include deep\n  Port 3\nHost *\n  User last\n',
    'd/2.conf': 'Host *\n  Port 2\n',
    'd/1.conf': 'Host one\n  Port 1\n',
    'd/.hidden.conf': 'Port 9\n',
    'd/x.other': 'Port 9\n',
    deep: 'HostName deep\nHost other\n  HostName never\nInclude d/user\n',
    'd/user': 'Host inner\n  User included\n',
  }
  expect(await settingsOf(files, 'one')).toEqual({ ...none, port: 1, user: 'last' })
  // The Host lines of an included file end with it, and count only where its block does.
  expect(await settingsOf(files, 'inner')).toEqual({ ...none, port: 2, hostName: 'deep', user: 'last' })
  expect(await settingsOf(files, 'other')).toEqual({ ...none, port: 2, user: 'last' })
  await expect(settingsOf({ config: 'Include config\n' }, 'one')).rejects.toThrow(/^Include in .*16 levels/)
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`d/${i}`, '\n']))
  await expect(settingsOf({ config: 'Include d/*\n', ...many }, 'one')).rejects.toThrow(/more than 100 files/)
  await expect(settingsOf({ config: 'Include /\n' }, 'one')).rejects.toThrow(/A file that Include .* names/)
})

test('Match: by host, user and all; the others are named and never run', async () => {
  const ran = join(folder.path, 'ran')
  const config = [
    'Host web',
    '  HostName www.example',
    'Match host *.example user deploy,root',
    '  Port 1',
    'Match originalhost web !user deploy',
    '  Port 2',
    `Match host www.example exec "touch ${ran}"`,
    '  Port 3',
    'Match host elsewhere localnetwork 10.0.0.0/8',
    '  Port 4',
    `Match localuser=${userInfo().username} host=mail`,
    '  Port 5',
    'Match !all',
    '  Port 6',
    'Match all',
    '  User matched',
  ].join('\n')
  const web = { ...none, hostName: 'www.example', user: 'matched', notFollowed: ['Match exec'] }
  expect(await settingsOf({ config }, 'web', { user: 'deploy' })).toEqual({ ...web, port: 1 })
  expect(await settingsOf({ config }, 'web')).toEqual({ ...web, port: 2 })
  expect(await settingsOf({ config }, 'mail')).toEqual({ ...none, port: 5, user: 'matched' })
  await expect(readSshConfig(ran)).resolves.toBeDefined()
})

test('IdentityFile adds up, and its tokens and variables are replaced', async () => {
  const config = [
    'IdentityFile ~/.ssh/a',
    'Host web',
    '  HostName www',
    '  User deploy',
    '  IdentityFile "/keys/%r of %h-%n-%p-%%"',
    '  IdentityFile /keys/%r%u',
    '  IdentityFile %d/b',
    '  IdentityFile ${HOME}/c',
    'Host many',
    ...Array.from({ length: 12 }, (_, i) => `  IdentityFile /keys/${i}`),
    'Host bare',
    '  IdentityFile none',
  ].join('\n')
  const own = [join(homedir(), '.ssh/a')]
  const { username } = userInfo()
  expect((await settingsOf({ config }, 'web', { user: 'bob', port: 5 })).identityFiles).toEqual([
    ...own,
    '/keys/bob of www-web-5-%',
    `/keys/bob${username}`,
    join(homedir(), 'b'),
    join(process.env['HOME'] ?? '', 'c'),
  ])
  expect((await settingsOf({ config }, 'web')).identityFiles[1]).toBe('/keys/deploy of www-web-22-%')
  const many = await settingsOf({ config }, 'many')
  expect([many.identityFiles.length, many.notFollowed]).toEqual([10, ['IdentityFile after the first 10']])
  expect((await settingsOf({ config }, 'bare')).identityFiles).toEqual([])
  await expect(settingsOf({ config: 'IdentityFile /keys/%C' }, 'web')).rejects.toThrow(/IdentityFile .* token %C/)
  await expect(settingsOf({ config: 'IdentityFile ${NO_SUCH}/a' }, 'web')).rejects.toThrow(/variable NO_SUCH/)
  // The caller of an action chooses the user.
  await expect(settingsOf({ config }, 'web', { user: '../../etc/x' })).rejects.toThrow(/IdentityFile .* user \(%r\)/)
})

test('ProxyJump and ProxyCommand: whichever comes first', async () => {
  const config = [
    'Host a b',
    '  ProxyJump ssh://%r@jump:22, other',
    'Host b c',
    '  ProxyCommand nc -X "a b" %h %p # %%',
    'Host *',
    '  ProxyCommand never',
    '  ProxyJump never',
  ].join('\n')
  expect((await settingsOf({ config }, 'b', { user: 'x' })).proxyJump).toEqual(['x@jump:22', 'other'])
  const { proxyCommand, proxyJump } = await settingsOf({ config }, 'c', { port: 7 })
  expect([proxyCommand, proxyJump]).toEqual(['nc -X "a b" c 7 # %', undefined])
  expect(await settingsOf({ config: 'Host *\n ProxyCommand none\n ProxyJump x' }, 'c')).toEqual(none)
})

test('ProxyCommand: from a file of the operator alone, and with harmless names', async () => {
  const config = 'ProxyCommand nc %h %p -u %r\n'
  expect((await settingsOf({ config }, 'c')).proxyCommand).toBe('nc c 22 -u system')
  for (const user of ['$(reboot)', 'a b', "a'b", '-x', 'a;b', 'a\nb', '`id`']) {
    await expect(settingsOf({ config }, 'c', { user })).rejects.toThrow(/ProxyCommand .* user \(%r\)/)
  }
  const { root } = await settingsOf({ config: 'Include other\n', other: config }, 'c')
  for (const mode of [0o620, 0o602]) {
    chmodSync(join(root, 'other'), mode)
    const read = await readSshConfig(join(root, 'config'))
    expect(() => read.settingsOf('c', { user: undefined, port: undefined, defaultUser: 'x' })).toThrow(
      /ProxyCommand .* is not run/,
    )
  }
})

test('names directives that it does not follow, where they have an effect', async () => {
  const config = 'Host a\n CertificateFile x\n ProxyUseFdpass no\n Compression yes\nHost *\n BindAddress ::1\n'
  expect((await settingsOf({ config }, 'a')).notFollowed).toEqual(['CertificateFile', 'BindAddress'])
  expect((await settingsOf({ config }, 'b')).notFollowed).toEqual(['BindAddress'])
})

test('refuses what is no configuration', async () => {
  await expect(settingsOf({ config: 'Host\0a' }, 'a')).rejects.toThrow(/is not an OpenSSH client configuration/)
  await expect(settingsOf({ config: `#${'x'.repeat(1024 * 1024)}` }, 'a')).rejects.toThrow(/ssh_config_file_path/)
})
