/** @throws Error on Windows, where the processes of a command cannot be stopped as a group, and there is no Redis */
export function needPosix(command: string, platform: string = process.platform): void {
  if (platform !== 'win32') return
  throw new Error(`${command} runs on Linux, macOS and WSL. Run it in a terminal of WSL`)
}

/** @throws Error if this Node is older than a command needs */
export function needNode(oldest: number, command: string): void {
  const [major] = process.versions.node.split('.')
  if (Number(major) >= oldest) return
  throw new Error(`${command} needs Node ${oldest} or newer; this is ${process.version}`)
}
