/** @throws Error if this Node is older than a command needs */
export function needNode(oldest: number, command: string): void {
  const [major] = process.versions.node.split('.')
  if (Number(major) >= oldest) return
  throw new Error(`${command} needs Node ${oldest} or newer; this is ${process.version}`)
}
