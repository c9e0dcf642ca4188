import { groupOf, type Share } from './shares.ts'

const [WIDTH, HEIGHT] = [1600, 900]

/** An SVG with a column for each package or folder, and a box for each module. Areas are compressed bytes. */
export function treemap(modules: Share[]): string {
  const sum = (shares: Share[]) => shares.reduce((total, { gzip }) => total + gzip, 0)
  const columns = Object.entries(Object.groupBy(modules, ({ name }) => groupOf(name))).sort(
    ([, one], [, other]) => sum(other!) - sum(one!),
  )
  let x = 0
  const boxes = columns.flatMap(([group, shares], index) => {
    const width = (WIDTH * sum(shares!)) / sum(modules)
    const left = x
    let y = 0
    x += width
    return shares!.map(({ name, gzip }) => {
      const height = (HEIGHT * gzip) / sum(shares!)
      const top = y
      y += height
      const label = `${top === 0 ? group : name.slice(group.length + 1)} ${(gzip / 1024).toFixed(1)}`
      return `<svg x="${left}" y="${top}" width="${width}" height="${height}"><title>${name}: ${gzip} bytes</title><rect width="100%" height="100%" fill="hsl(${index * 47} 60% 80%)" stroke="#fff"/><text x="3" y="12">${label}</text></svg>`
    })
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11">${boxes.join('\n')}</svg>\n`
}
