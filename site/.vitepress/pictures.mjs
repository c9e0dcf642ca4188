import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A picture that has one for the dark scheme beside it, such as `a-dark.png`, follows the scheme of the reader. */
export function followScheme(md) {
  const { image } = md.renderer.rules
  md.renderer.rules.image = (tokens, index, options, env, self) => {
    const token = tokens[index]
    const light = token.attrGet('src')
    const dark = light.replace(/\.png$/, '-dark.png')
    if (dark === light || !existsSync(join(dirname(env.path), dark)))
      return image(tokens, index, options, env, self)
    return [light, dark]
      .map((src, n) => {
        token.attrSet('src', src)
        token.attrSet('class', n === 0 ? 'in-light' : 'in-dark')
        return image(tokens, index, options, env, self)
      })
      .join('')
  }
}
