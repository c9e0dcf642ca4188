/**
 * A part of the limiter that its configuration needs. Only the module of another configuration, or of another release, can lack one.
 * @throws {Error} without it
 */
export function needed<Part>(part: Part | undefined, name: string): Part {
  if (part) return part
  throw new Error(`The module lacks ${name}. Run: npx sluice build`)
}
