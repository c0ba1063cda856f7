/**
 * `npm run build [-- --force]`: bundles src/ and web/ into dist/ with the files that the program reads at run time.
 *
 * It replaces files in dist/ one by one, entry points last, and keeps the chunks of the previous build:
 * a server that starts or runs during a build still finds the files that it loads later.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { main, root, ScriptError, withLock } from './lib.mjs'

const dist = join(root, 'dist')
const recordPath = join(dist, 'build.json')

/** Output name → source. Threads and helper processes are files of their own because they are loaded by name. */
export const ENTRIES = {
  'template-thread': 'src/core/rendering/template-thread.ts',
  'background-thread': 'src/db/sqlite/background-thread.ts',
  'writer-thread': 'src/db/sqlite/writer-thread.ts',
  'copy-thread': 'src/db/sqlite/copy-thread.ts',
  'crypt-thread': 'src/modules/auth/backends/crypt-thread.ts',
  'pam-helper': 'src/modules/auth/backends/pam-helper.ts',
  'expression-thread': 'src/modules/workflows/engine/expression-thread.ts',
  'inspection-thread': 'src/modules/workflows/inspection/inspection-thread.ts',
  'private-key-thread': 'src/runners/ssh/private-key-thread.ts',
  'posix-spawn-thread': 'src/runners/process/posix-spawn-thread.ts',
  'process-reader-thread': 'src/runners/process/process-reader-thread.ts',
  'send-mail': 'src/runners/send-mail.ts',
  main: 'src/cli/main.ts',
  cli: 'src/cli.ts',
}
/** Not bundled: they find their binary relative to their own directory. */
const NATIVE = ['better-sqlite3', 'argon2', 'koffi']
/** Optional native parts of packages, which would need compiling. */
export const LEFT_OUT = ['cpu-features', './crypto/build/Release/sshcrypto.node', 'unix-dgram']
/** Source folder → folder in dist/. */
const ASSET_FOLDERS = {
  'src/modules/packs/chatops': 'packs/chatops',
  'src/modules/packs/core': 'packs/core',
  'src/runners/python/lib': 'python/lib',
  'src/modules/packs/examples': 'packs/examples',
  'src/modules/packs/linux': 'packs/linux',
  'src/modules/packs/packs': 'packs/packs',
}
/** Further files → folder in dist/. */
export const ASSET_FILES = {
  'node_modules/swagger-ui-dist/swagger-ui.css': 'api-docs',
  'node_modules/swagger-ui-dist/swagger-ui-bundle.js': 'api-docs',
  'node_modules/swagger-ui-dist/LICENSE': 'api-docs',
  'node_modules/swagger-ui-dist/NOTICE': 'api-docs',
  'svc.conf.example': '',
}
export const INPUTS = [
  'src',
  'migrations',
  'web',
  'svc.conf.example',
  'scripts/build.mjs',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
]
/** In dist/; built separately. */
export const BINARY_FOLDER = 'bin'
export const NOTICES = 'THIRD-PARTY-LICENSES.txt'

/** @returns {string[]} */
export function listFiles(path) {
  if (!existsSync(path)) return []
  const entries = readdirSync(path, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name))
}

export function hashInputs(inputs = INPUTS) {
  const hash = createHash('sha256')
  /** @type {string[]} */
  const files = inputs.flatMap((name) => (name.includes('.') ? [join(root, name)] : listFiles(join(root, name))))
  for (const file of files.toSorted()) {
    if (/\.test\.tsx?$/.test(file)) continue
    const content = readFileSync(file)
    hash.update(`${relative(root, file)}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

function readRecord() {
  try {
    return JSON.parse(readFileSync(recordPath, 'utf8'))
  } catch {
    return { inputs: '', files: [] }
  }
}

function isUpToDate(record, inputs) {
  return record.inputs === inputs && record.files.every((file) => existsSync(join(dist, file)))
}

/** Folders of the packages whose code or files ended up in dist/. */
export function findPackages(inputPaths) {
  /** @type {Set<string>} */
  const folders = new Set()
  for (const path of inputPaths) {
    // Its suffix names the importer, which is no input by that.
    if (path.startsWith('built-in:')) continue
    const found = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)
    if (found !== null) folders.add(found[0])
  }
  return [...folders].toSorted()
}

/** Older packages have `licenses: [{ type }]`, or nothing but a section of their readme. */
function licenceOf(manifest) {
  const named = manifest.license ?? (manifest.licenses ?? []).map((licence) => licence.type).join(' OR ')
  return named === '' ? 'named below' : named
}

/** For a package that names its licence and has no file with the text. */
const LICENCE_TEXTS = {
  ISC: `Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR
IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.`,
}

function readLicenceTexts(folder, manifest) {
  const names = readdirSync(folder).toSorted()
  const read = (name) => readFileSync(join(folder, name), 'utf8').trim()
  const texts = names.filter((name) => /^(licen[cs]e|notice|copying)\b/i.test(name)).map(read)
  if (texts.length > 0) return texts
  const readmes = names.filter((name) => /^readme\b/i.test(name)).map(read)
  const sections = readmes.flatMap((text) => /^#+ licen[cs]e\b[^]*/im.exec(text) ?? [])
  const standard = LICENCE_TEXTS[licenceOf(manifest)]
  if (sections.length > 0 || standard === undefined) return sections
  return [`Copyright (c) ${manifest.author?.name ?? manifest.author ?? manifest.name}`, standard]
}

export function writeNotices(path, folders) {
  const parts = folders.map((folder) => {
    const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    return [
      `${manifest.name} ${manifest.version} (${licenceOf(manifest)})`,
      ...readLicenceTexts(join(root, folder), manifest),
    ].join('\n\n')
  })
  const intro = 'The files in this directory contain parts of the packages below.'
  writeFileSync(path, `${[intro, ...parts].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`)
}

/**
 * An import of a built-in module reads all that it exports, and with that loads what some of it stands for: `node:http` a
 * whole second HTTP client, `node:process` the terminal, `node:fs` its promises, `node:util` decoders of text and more. That is
 * most of the time that a command of the client would take. Taken as an object they cost nothing before they are used.
 */
const FACADES = ['node:fs', 'node:http', 'node:process', 'node:util']

/** The command line parser can start programs; this product does not use that. */
const UNUSED = 'node:child_process'

export const builtIns = {
  name: 'built-in modules without their facades',
  setup(build) {
    build.onResolve({ filter: /^node:/ }, ({ path, kind, importer }) => {
      // The guard must run on Node versions without getBuiltinModule.
      if (kind !== 'import-statement' || importer === join(root, ENTRIES.cli)) return undefined
      const isUnused = path === UNUSED && /[\\/]node_modules[\\/]commander[\\/]/.test(importer)
      if (!isUnused && !FACADES.includes(path)) return undefined
      // One for each importer: a shared one would be a file of its own, and is smaller than the import of it.
      const suffix = ['node:process', 'node:http'].includes(path) ? `?${relative(root, importer)}` : ''
      return { path, namespace: 'built-in', suffix }
    })
    build.onLoad({ filter: /^/, namespace: 'built-in' }, ({ path }) => {
      const object = `process.getBuiltinModule('${path}')`
      if (path === UNUSED) return { contents: `exports.spawn = (...args) => ${object}.spawn(...args)` }
      if (path === 'node:process') return { contents: 'export default process' }
      // The bundler reads all own properties of an object, which would load their modules.
      return { contents: `module.exports = Object.create(${object})` }
    })
  },
}

/** `import { a, type B } from '../x/index.ts'`, and the same as `export`. */
const NAMED = /^(import|export)( type)? \{([^}]*)\} from '(\.[^']*)'/gm

/** @returns {{ name: string, as: string }[]} what such a statement names, types left out */
function namesIn(list) {
  return list
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '' && !each.startsWith('type '))
    .map((each) => {
      const [name, as = name] = each.split(' as ')
      return { name, as }
    })
}

/**
 * The bundler gives a chunk to everybody who imports its files, used or not. An index that only hands on what its folder
 * exports would so load the whole folder, such as the log of the server for a command that escapes a text. Imports by
 * way of such an index become imports of the files themselves.
 */
export const directImports = {
  name: 'imports past an index',
  setup(build) {
    /** @type {Map<string, Map<string, { file: string, name: string }> | undefined>} */
    const indexes = new Map()

    /** What the index hands on; undefined when it does anything else. */
    function readIndex(path) {
      if (indexes.has(path)) return indexes.get(path)
      const text = readFileSync(path, 'utf8')
      const rest = text.replace(NAMED, '').replace(/\/\*[^]*?\*\/|\/\/.*/g, '')
      const found = rest.trim() === '' && !/^import/m.test(text) ? new Map() : undefined
      indexes.set(path, found)
      for (const [, , type, list, from] of found === undefined ? [] : text.matchAll(NAMED)) {
        for (const { name, as } of type === undefined ? namesIn(list) : []) {
          found?.set(as, find(name, resolve(dirname(path), from)))
        }
      }
      return found
    }

    function find(name, file) {
      return (file.endsWith('/index.ts') ? readIndex(file)?.get(name) : undefined) ?? { file, name }
    }

    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (!path.startsWith(join(root, 'src/'))) return undefined
      const contents = readFileSync(path, 'utf8').replace(NAMED, (statement, keyword, type, list, from) => {
        if (type !== undefined || !from.endsWith('/index.ts')) return statement
        const target = resolve(dirname(path), from)
        if (readIndex(target) === undefined) return statement
        const direct = namesIn(list).map(({ name, as }) => {
          const found = find(name, target)
          const names = found.name === as ? as : `${found.name} as ${as}`
          return `${keyword} { ${names} } from ${JSON.stringify(found.file)}`
        })
        // The lines after it keep their numbers.
        return direct.join('; ') + '\n'.repeat(statement.split('\n').length - 1)
      })
      return { contents, loader: 'ts', resolveDir: dirname(path) }
    })
  },
}

const bundleOptions = {
  // Flat, so that a thread's file stands beside whatever chunk starts it.
  chunkNames: '[name]-[hash]',
  splitting: true,
  format: 'esm',
  sourcemap: 'linked',
  external: [...NATIVE, ...LEFT_OUT],
  // CommonJS packages inside an ES module still call require() for built-in modules, and ask where they are.
  banner: {
    js: "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);",
  },
  define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
  plugins: [builtIns, directImports],
}

/** @param options of esbuild, `entryPoints` among them @returns its metafile @throws ScriptError with its messages */
export async function bundle(outdir, options) {
  const missing = Object.values(options.entryPoints).filter((source) => !existsSync(join(root, source)))
  if (missing.length > 0) throw new ScriptError(`Missing source of the build: ${missing.join(', ')}.`)
  const esbuild = await import('esbuild')
  try {
    const result = await esbuild.build({
      absWorkingDir: root,
      outdir,
      bundle: true,
      platform: 'node',
      target: 'node22',
      // Smaller text needs less memory; names stay, and lines stay short enough for crash reports.
      minifyWhitespace: true,
      minifySyntax: true,
      lineLimit: 160,
      legalComments: 'none',
      metafile: true,
      logLevel: 'silent',
      ...options,
    })
    for (const message of await esbuild.formatMessages(result.warnings, {
      kind: 'warning',
      color: process.stderr.isTTY,
    })) {
      process.stderr.write(message)
    }
    return result.metafile
  } catch (error) {
    if (!Array.isArray(error.errors)) throw error
    const messages = await esbuild.formatMessages(error.errors, { kind: 'error', color: process.stderr.isTTY })
    throw new ScriptError(`${messages.join('')}The build failed (see above).`)
  } finally {
    await esbuild.stop()
  }
}

export function copyAssets(outdir) {
  for (const [source, target] of Object.entries(ASSET_FOLDERS)) {
    const isAsset = (path) => !path.endsWith('.ts')
    if (existsSync(join(root, source)))
      cpSync(join(root, source), join(outdir, target), { recursive: true, filter: isAsset })
  }
  for (const [source, target] of Object.entries(ASSET_FILES)) {
    cpSync(join(root, source), join(outdir, target, source.split('/').at(-1)))
  }
}

/** In the output folder, and in the single executable. */
const WEB_FOLDER = 'web'

/**
 * Builds the web client, with precompressed copies of each file.
 *
 * @returns paths of its source files
 */
export async function bundleWeb(outdir) {
  const folder = join(outdir, WEB_FOLDER)
  const { build: buildWeb } = await import('vite')
  /** @type {string[]} */
  const modules = []
  const inventory = {
    name: 'inventory',
    generateBundle() {
      for (const id of this.getModuleIds()) modules.push(relative(root, id.split('?', 1)[0]))
    },
  }
  // A build in a test must produce the same files.
  const { NODE_ENV: env } = process.env
  process.env.NODE_ENV = 'production'
  try {
    await buildWeb({
      configFile: join(root, 'web', 'vite.config.ts'),
      build: { outDir: folder },
      plugins: [inventory],
      logLevel: 'silent',
    })
  } catch (error) {
    throw new ScriptError(`${error.message}\nThe build of the web client failed (see above).`)
  } finally {
    if (env === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = env
  }
  for (const file of listFiles(folder)) {
    const content = readFileSync(file)
    const size = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
    writeFileSync(`${file}.br`, brotliCompressSync(content, { params: size }))
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }))
  }
  return modules
}

/** Moves the finished files into dist/ and removes files that neither this build nor the previous one needs. */
function publish(staged, inputs) {
  const before = readRecord()
  // An interrupted build must not look complete.
  rmSync(recordPath, { force: true })
  /** @type {string[]} */
  const files = listFiles(staged).map((file) => relative(staged, file))
  const rank = (file) => Object.keys(ENTRIES).indexOf(file.replace(/\.js$/, ''))
  for (const file of files.toSorted((a, b) => rank(a) - rank(b))) {
    mkdirSync(dirname(join(dist, file)), { recursive: true })
    renameSync(join(staged, file), join(dist, file))
  }
  const kept = new Set([...files, ...before.files])
  const isKept = (file) => kept.has(file) || file.startsWith(`${BINARY_FOLDER}/`)
  for (const file of listFiles(dist)) if (!isKept(relative(dist, file))) rmSync(file)
  const record = `${JSON.stringify({ inputs, files: files.toSorted() }, null, 2)}\n`
  writeFileSync(join(staged, 'build.json'), record)
  renameSync(join(staged, 'build.json'), recordPath)
}

/**
 * Brings dist/ up to date; resolves to true if there was something to do.
 *
 * @param options `force`; `during` gets the work, if there is some, and calls it
 * @throws ScriptError with the compiler's messages
 */
export async function build(options = {}) {
  if (options.force !== true && isUpToDate(readRecord(), hashInputs())) return false
  return withLock('build', async () => {
    const inputs = hashInputs()
    if (options.force !== true && isUpToDate(readRecord(), inputs)) return false
    const { during = (work) => work() } = options
    await during(() => buildAll(inputs))
    return true
  })
}

async function buildAll(inputs) {
  const staged = join(root, '.build')
  rmSync(staged, { recursive: true, force: true })
  try {
    const metafile = await bundle(staged, { entryPoints: ENTRIES, ...bundleOptions })
    copyAssets(staged)
    const web = await bundleWeb(staged)
    const contained = [...Object.keys(metafile.inputs), ...web, ...Object.keys(ASSET_FILES)]
    writeNotices(join(staged, NOTICES), findPackages(contained))
    chmodSync(join(staged, 'cli.js'), 0o755)
    publish(staged, inputs)
  } finally {
    rmSync(staged, { recursive: true, force: true })
  }
}

if (resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const started = performance.now()
    const force = process.argv.includes('--force')
    const didBuild = await build({ force })
    const seconds = ((performance.now() - started) / 1000).toFixed(2)
    process.stdout.write(didBuild ? `Built dist/ in ${seconds} s\n` : 'dist/ is up to date\n')
  })
}
