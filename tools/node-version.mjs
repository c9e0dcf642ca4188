// Each npm script preloads this file. An older Node then fails with one clear line. Plain JavaScript, since it must run there.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 2)) {
  console.error(
    `The scripts of Sluice need Node 24.2 or newer; this is ${process.version}. Run "npm ci" without --ignore-scripts to install it into node_modules.`,
  )
  process.exit(1)
}
