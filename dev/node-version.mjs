// Preloaded by every script, in plain JavaScript: says in one line what an older Node would say in thirty.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 2)) {
  console.error(
    `Sluice's scripts need Node 24.2 or newer, and this is ${process.version}: run "npm ci" without --ignore-scripts, which brings one into node_modules.`,
  )
  process.exit(1)
}
