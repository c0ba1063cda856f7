// Refuses a Node that the other scripts cannot run on. Imported first and kept to old syntax, so that an old Node gets here.
var version = process.versions.node
if (Number(version.split('.')[0]) < 20) {
  console.error(
    'svc needs Node.js 20 or newer to install itself; this is ' + version + '. Get one from https://nodejs.org.',
  )
  process.exit(78)
}
