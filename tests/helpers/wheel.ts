/** A package for pip, made without asking any index. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { ensureDebianPackage } from './apt.ts'

/** A wheel is a zip file with a few files about itself. */
const MAKE = `import sys, zipfile
path, version = sys.argv[1:]
with zipfile.ZipFile(path, "w") as wheel:
    info = "tiny_test_wheel-%s.dist-info/" % version
    wheel.writestr("tiny_test_wheel.py", "VERSION = %r\\n" % version)
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tiny-test-wheel\\nVersion: %s\\n" % version)
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "")
`

/** Options of venv for environments that borrow the pip of the Python they are made of: a second instead of half a minute. */
export const quickVenv = ['--system-site-packages', '--without-pip']

/** Makes sure that virtual environments can be made, with a pip to borrow. @returns the Python they are made of */
export async function ensureVenv(): Promise<string> {
  await ensureDebianPackage('python3', '/usr/bin/python3')
  const ask = (code: string): string => execFileSync('python3', ['-c', code], { encoding: 'utf8' }).trim()
  // Debian has them in a package of their own.
  await ensureDebianPackage(
    'python3-venv',
    ask('import sysconfig; print(sysconfig.get_path("stdlib") + "/ensurepip/__init__.py")'),
  )
  const pip = ask('import importlib.util as u; spec = u.find_spec("pip"); print(spec.origin if spec else "")')
  await ensureDebianPackage('python3-pip', pip || '/usr/lib/python3/dist-packages/pip/__init__.py')
  return ask('import sys; print(sys.executable)')
}

/** Writes the wheel, with a module `tiny_test_wheel` that knows its `VERSION`. @returns the name of its file */
export function makeWheel(folder: string, version: string): string {
  const name = `tiny_test_wheel-${version}-py3-none-any.whl`
  execFileSync('python3', ['-c', MAKE, join(folder, name), version])
  return name
}
