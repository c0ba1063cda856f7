// `npm start`: installs and builds what is needed, then serves. Kept to old syntax, so that an old Node can read the refusal.
var major = Number(process.versions.node.split('.')[0])
if (major < 20) {
  console.error(
    'svc needs Node.js 20 or newer to be installed; this is ' +
      process.versions.node +
      '. Get one from https://nodejs.org.',
  )
  process.exit(78)
}
void import('./start-server.mjs')
