// Preloaded by the guard's tests: this process believes that it runs on the Node named in FAKE_NODE_VERSION, its children do not.
const version = process.env.FAKE_NODE_VERSION
if (version !== undefined) {
  delete process.env.FAKE_NODE_VERSION
  Object.defineProperty(process, 'versions', { value: { ...process.versions, node: version } })
}
