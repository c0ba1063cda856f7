/**
 * `npm run build:binary [-- --force]`: builds dist/bin/svc, a single file that runs without Node.
 *
 * It contains the pinned Node and the whole program: the modules as one CommonJS bundle, each thread and helper
 * program as a separate bundle, and add-ons and files unchanged (docs/install.md). `src/core/bundle.ts` finds them there.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  ASSET_FILES,
  BINARY_FOLDER,
  builtIns,
  bundle,
  bundleWeb,
  copyAssets,
  ENTRIES,
  findPackages,
  hashInputs,
  INPUTS,
  LEFT_OUT,
  listFiles,
  NOTICES,
  writeNotices,
} from './build.mjs'
import { capture, ensureInstalled, main, root, ScriptError, withLock } from './lib.mjs'

const folder = join(root, 'dist', BINARY_FOLDER)
const target = join(folder, 'svc')
const recordPath = join(folder, 'build.json')
const place = `${process.platform}-${process.arch}`

/**
 * Of the engine, for all commands. A server would otherwise have to start anew to get them, as `src/cli.ts` does it, where
 * they are explained; to a command of the client they make no difference that can be measured.
 */
const ENGINE_FLAGS = ['--max-semi-space-size=8', '--heap-growing-percent=30']
/** As the Node project marks the place; postject finds it by this. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
/** Directories that other programs read, such as the Python interpreter. */
const ON_DISK = ['packs', 'python']
/** The two that run commands and their threads; everything else is an entry of its own. */
const { cli: _cli, main: _main, ...PARTS } = ENTRIES

/** Optional imports of packages. */
const NOT_INSTALLED = ['supports-color']

/** Name in `src/core/native-addon.ts` → file, and what of the package looks for it. */
function listAddons() {
  const argon2 = { 'linux-x64': 'argon2.glibc.node', 'linux-arm64': 'argon2.armv8.glibc.node' }[place]
  if (argon2 === undefined)
    throw new ScriptError(
      `The single executable does not support ${place}. Supported: Linux on x64 and arm64 with glibc.`,
    )
  const modules = join(root, 'node_modules')
  return {
    'better-sqlite3': {
      file: join(modules, 'better-sqlite3', 'prebuilds', `${place}.node`),
      loader: /better-sqlite3[\\/]lib[\\/]binding\.js$/,
      code: (addon) => `exports.getBinding = () => ${addon}`,
    },
    argon2: {
      file: join(modules, 'argon2', 'prebuilds', place, argon2),
      loader: /node-gyp-build[\\/](node-gyp-build|index)\.js$/,
      code: (addon) => `module.exports = () => ${addon}`,
    },
    koffi: {
      file: join(modules, '@koromix', `koffi-${place}`, place.replace('-', '_'), 'koffi.node'),
      loader: /node_modules[\\/]koffi[\\/]index\.js$/,
      code: (addon) => `export default ${addon}`,
    },
  }
}

const addons = {
  name: 'add-ons from inside the executable',
  setup(build) {
    for (const [name, { loader, code }] of Object.entries(listAddons())) {
      const addon = `require('./src/core/native-addon.ts').loadAddon(${JSON.stringify(name)})`
      build.onLoad({ filter: loader }, () => ({ contents: code(addon), loader: 'js', resolveDir: root }))
    }
    // Looked for at run time they could come from whatever folder the program was started in.
    build.onResolve({ filter: /^/ }, ({ path }) =>
      [...LEFT_OUT, ...NOT_INSTALLED].includes(path) ? { path, namespace: 'left-out' } : undefined,
    )
    build.onLoad({ filter: /^/, namespace: 'left-out' }, ({ path }) => ({
      contents: `throw new Error(${JSON.stringify(`${path} is not part of this program`)})`,
    }))
  },
}

async function bundleAll(outdir) {
  const metafile = await bundle(outdir, {
    entryPoints: { executable: 'src/cli/executable.ts', ...PARTS },
    format: 'cjs',
    define: { 'import.meta.url': '"sea:/executable.js"' },
    supported: { 'dynamic-import': false },
    plugins: [addons, builtIns],
  })
  for (const [file, { imports }] of Object.entries(metafile.outputs)) {
    const foreign = imports.filter(
      ({ path, external }) => external === true && !path.startsWith('node:') && !isBuiltin(path),
    )
    if (foreign.length > 0) throw new ScriptError(`${file} imports ${foreign[0].path}, which is not in the executable.`)
  }
  return metafile
}

/** The files that `src/core/bundle.ts` unpacks, and a hash of all of them. */
function describeOnDisk(staged) {
  const hash = createHash('sha256')
  /** @type {Record<string, number>} */
  const files = {}
  for (const path of ON_DISK.flatMap((name) => listFiles(join(staged, name))).toSorted()) {
    const file = relative(staged, path)
    const mode = (statSync(path).mode & 0o100) === 0 ? 0o644 : 0o755
    files[file] = mode
    hash.update(`${file}\0${mode}\0${createHash('sha256').update(readFileSync(path)).digest('hex')}\0`)
  }
  return { hash: hash.digest('hex').slice(0, 16), files }
}

/** @returns bytes */
function strip(file) {
  const { error, status, stderr } = spawnSync('strip', [file], { encoding: 'utf8' })
  if (error === undefined && status === 0) return
  const why = error === undefined ? `strip failed: ${stderr.trim()}` : 'the program strip is missing (package binutils)'
  process.stdout.write(`The executable is about 18 MB larger than necessary: ${why}.\n`)
}

async function makeExecutable(staged) {
  const metafile = await bundleAll(staged)
  copyAssets(staged)
  const web = await bundleWeb(staged)
  const contained = [...Object.keys(metafile.inputs), ...web, ...Object.keys(ASSET_FILES)]
  writeNotices(join(staged, NOTICES), findPackages(contained))
  const node = realNode()
  const nodeLicence = join(node, '..', '..', 'LICENSE')
  if (existsSync(nodeLicence)) {
    appendFileSync(join(staged, NOTICES), `\n${'-'.repeat(80)}\n\nNode.js\n\n${readFileSync(nodeLicence, 'utf8')}`)
  }
  mkdirSync(join(staged, 'native'))
  for (const [name, { file }] of Object.entries(listAddons())) {
    if (!existsSync(file)) throw new ScriptError(`${file} is missing: run "npm ci" and try again.`)
    copyFileSync(file, join(staged, 'native', `${name}.node`))
  }
  writeFileSync(join(staged, 'unpacked.json'), JSON.stringify(describeOnDisk(staged)))

  const assets = Object.fromEntries(
    listFiles(staged)
      .toSorted()
      .map((path) => [relative(staged, path), path])
      .filter(([name]) => name !== 'executable.js'),
  )
  const config = {
    // Relative: stack traces show it, and must not contain the build path.
    main: 'executable.js',
    output: 'sea.blob',
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    execArgv: ENGINE_FLAGS,
    // NODE_OPTIONS of the caller must not affect it.
    execArgvExtension: 'none',
    assets,
  }
  writeFileSync(join(staged, 'sea.json'), JSON.stringify(config))
  // The same flags: V8 rejects cached code compiled with other flags.
  // The fixed seed makes builds reproducible.
  const made = await capture(node, [...ENGINE_FLAGS, '--random-seed=1', '--experimental-sea-config', 'sea.json'], {
    cwd: staged,
  })
  if (made.code !== 0) throw new ScriptError(`${made.output}\nNode could not create the executable (see above).`)

  const file = join(staged, 'svc')
  copyFileSync(node, file)
  chmodSync(file, 0o755)
  strip(file)
  const { inject } = createRequire(import.meta.url)('postject')
  await silently(() => inject(file, 'NODE_SEA_BLOB', readFileSync(join(staged, 'sea.blob')), { sentinelFuse: FUSE }))
  return file
}

/** The Node that goes into the executable. */
function realNode() {
  const node = join(root, 'node_modules', `node-${place}`, 'bin', 'node')
  if (!existsSync(node)) throw new ScriptError(`${node} is missing: run "npm ci" and try again.`)
  return node
}

/** Its warnings are about stripped strings, which are harmless. */
async function silently(work) {
  const { warn, log } = console
  console.warn = () => undefined
  console.log = () => undefined
  try {
    return await work()
  } finally {
    Object.assign(console, { warn, log })
  }
}

function readRecord() {
  try {
    return JSON.parse(readFileSync(recordPath, 'utf8'))
  } catch {
    return { inputs: '' }
  }
}

/** Brings dist/bin/svc up to date; resolves to true if there was something to do. @throws ScriptError */
export async function buildBinary(options = {}) {
  await ensureInstalled()
  return withLock('binary', async () => {
    const inputs = hashInputs([...INPUTS, 'scripts/build-binary.mjs'])
    if (options.force !== true && existsSync(target) && readRecord().inputs === inputs) return false
    const staged = join(root, '.binary')
    rmSync(staged, { recursive: true, force: true })
    try {
      const file = await makeExecutable(staged)
      mkdirSync(folder, { recursive: true })
      rmSync(recordPath, { force: true })
      renameSync(file, target)
      writeFileSync(recordPath, `${JSON.stringify({ inputs })}\n`)
    } finally {
      rmSync(staged, { recursive: true, force: true })
    }
    return true
  })
}

if (resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const started = performance.now()
    const didBuild = await buildBinary({ force: process.argv.includes('--force') })
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    const megabytes = (statSync(target).size / 1e6).toFixed(1)
    const what = `${relative(root, target)} (${megabytes} MB)`
    process.stdout.write(didBuild ? `Built ${what} in ${seconds} s\n` : `${what} is up to date\n`)
  })
}
