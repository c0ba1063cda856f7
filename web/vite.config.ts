import { join } from 'node:path'
import { defineConfig } from 'vite'

/** The server that is asked while somebody works on the client. */
const target = process.env['SVC_API_URL'] ?? 'http://127.0.0.1:9101'
/** A page of another origin may change nothing there. */
const proxy = { target, changeOrigin: true, headers: { origin: new URL(target).origin } }

/** `scripts/build.mjs` gives the output folder; `vite web` serves it while somebody works on it. */
export default defineConfig({
  root: import.meta.dirname,
  // Every address is relative, so that a proxy may serve it below any path.
  base: './',
  publicDir: false,
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // `src/lib/json` is shared with the server.
  server: { fs: { allow: ['..'] }, proxy: { '/api': proxy, '/auth': proxy, '/stream': proxy } },
  build: {
    outDir: join(import.meta.dirname, '..', '.build', 'web'),
    // Beside `index.html`: the server answers these at `/ui/<file>`.
    assetsDir: 'ui',
    emptyOutDir: true,
    // An address of data in a style sheet would need a wider policy than `'self'`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
})
