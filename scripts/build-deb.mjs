/**
 * `npm run build:deb`: builds dist/bin/svc_<version>_<architecture>.deb with Debian's dpkg-deb (docs/recipes/debian.md).
 *
 * The package has the single executable, the unit and configuration of `svc service install` at the places where Debian
 * keeps them, and scripts in packaging/debian/. The same sources always produce the same bytes.
 * Imports TypeScript directly, hence needs Node 22.18 or newer: run it through npm, which puts the pinned one first.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { listFiles } from './build.mjs'
import { buildBinary } from './build-binary.mjs'
import { capture, main, root, ScriptError } from './lib.mjs'

const packaging = join(root, 'packaging', 'debian')
const binary = join(root, 'dist', 'bin', 'svc')
const architecture = { x64: 'amd64', arm64: 'arm64' }[process.arch]
/** Newer ones than the sources would make two builds differ. */
const EPOCH = process.env.SOURCE_DATE_EPOCH ?? '1767225600'
/** Of the shell → where Debian looks for its completions. */
const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/svc',
  zsh: 'usr/share/zsh/vendor-completions/_svc',
  fish: 'usr/share/fish/vendor_completions.d/svc.fish',
}
const CONFFILES = ['etc/svc/svc.conf', 'etc/logrotate.d/svc']
const SCRIPTS = ['postinst', 'prerm', 'postrm']

/** @returns what it prints @throws ScriptError */
async function ask(...words) {
  const { code, output } = await capture(binary, words, { cwd: root })
  if (code !== 0) throw new ScriptError(`dist/bin/svc ${words.join(' ')} failed:\n${output}`)
  return output
}

/** Writes the files of the package below `staged`. */
async function stage(staged, version) {
  const { accountName, makeConfiguration, makeUnit, paths } = await import('../src/cli/service/unit.ts')
  const { programNames } = await import('../src/cli/program-names.ts')
  const write = (path, content, mode = 0o644) => {
    const file = join(staged, path)
    mkdirSync(dirname(file), { recursive: true, mode: 0o755 })
    writeFileSync(file, content)
    chmodSync(file, mode)
  }
  /** Without a name and a time in it. */
  const zipped = (text) => gzipSync(text, { level: 9 })

  mkdirSync(join(staged, 'usr/bin'), { recursive: true })
  copyFileSync(binary, join(staged, 'usr/bin/svc'))
  chmodSync(join(staged, 'usr/bin/svc'), 0o755)
  for (const name of programNames) if (name !== 'svc') symlinkSync('svc', join(staged, 'usr/bin', name))
  write('lib/systemd/system/svc.service', makeUnit('/usr/bin/svc', 'Of the package svc.'))
  const example = readFileSync(join(root, 'svc.conf.example'), 'utf8')
  write(relative('/', paths.configuration), makeConfiguration(example), 0o640)
  write('etc/logrotate.d/svc', readFileSync(join(packaging, 'logrotate')))
  write('usr/share/man/man1/svc.1.gz', zipped(readFileSync(join(root, 'docs/svc.1'))))
  for (const name of programNames) {
    if (name !== 'svc') symlinkSync('svc.1.gz', join(staged, 'usr/share/man/man1', `${name}.1.gz`))
  }
  for (const [shell, path] of Object.entries(COMPLETIONS)) write(path, await ask('completion', shell))

  write('usr/share/doc/svc/copyright', readFileSync(join(packaging, 'copyright')))
  write('usr/share/doc/svc/licences.gz', zipped(await ask('__licenses')))
  const date = new Date(Number(EPOCH) * 1000).toUTCString().replace('GMT', '+0000')
  const changes = readFileSync(join(packaging, 'changelog'), 'utf8')
  write('usr/share/doc/svc/changelog.gz', zipped(changes.replace('@version@', version).replace('@date@', date)))
  write('usr/share/lintian/overrides/svc', readFileSync(join(packaging, 'lintian-overrides')))

  const sizes = listFiles(staged).map((file) => Math.ceil(statSync(file).size / 1024))
  const control = readFileSync(join(packaging, 'control'), 'utf8')
    .replace('@version@', version)
    .replace('@architecture@', architecture)
    .replace('@size@', String(sizes.reduce((sum, size) => sum + size, 0)))
  write('DEBIAN/control', control)
  write('DEBIAN/conffiles', CONFFILES.map((path) => `/${path}\n`).join(''))
  for (const name of SCRIPTS) {
    const text = readFileSync(join(packaging, name), 'utf8')
    write(`DEBIAN/${name}`, text.replaceAll('@account@', accountName), 0o755)
  }
}

/** @returns the file of the package @throws ScriptError */
async function buildDeb({ version, compression }) {
  if (architecture === undefined) throw new ScriptError(`There is no package for ${process.arch}: only x64 and arm64.`)
  await buildBinary()
  const staged = join(root, '.deb')
  const target = join(root, 'dist', 'bin', `svc_${version}_${architecture}.deb`)
  rmSync(staged, { recursive: true, force: true })
  try {
    await stage(staged, version)
    // Directories have the umask of whoever builds.
    spawnSync('find', [staged, '-type', 'd', '-exec', 'chmod', '0755', '{}', '+'])
    const words = ['--root-owner-group', `-Z${compression}`, '-z1', '--build', staged, `${target}.new`]
    const env = { ...process.env, SOURCE_DATE_EPOCH: EPOCH }
    const { error, status, stderr } = spawnSync('dpkg-deb', words, { encoding: 'utf8', env })
    if (error !== undefined)
      throw new ScriptError('The program dpkg-deb is missing: build the package on Debian or Ubuntu.')
    if (status !== 0) throw new ScriptError(`dpkg-deb failed:\n${stderr}`)
    renameSync(`${target}.new`, target)
  } finally {
    rmSync(staged, { recursive: true, force: true })
  }
  return target
}

await main(async () => {
  const { values: options } = parseArgs({
    options: {
      version: { type: 'string', default: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version },
      compression: { type: 'string', default: 'xz' },
    },
  })
  const started = performance.now()
  const file = await buildDeb(options)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  process.stdout.write(`Built ${relative(root, file)} (${(statSync(file).size / 1e6).toFixed(1)} MB) in ${seconds} s\n`)
})
