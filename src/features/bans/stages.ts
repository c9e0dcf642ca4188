import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { penalties } from './part.ts'
import { listedBy, listsBans, withBanList } from './watch.ts'

/** What it does, without what it adds to configurations. */
export const compile: Feature['compile'] = ({ config, log }) => {
  if (!isUsed(config, ({ penalty }) => penalty)) return {}
  const options = { isListed: listedBy(config), namespace: config.namespace, log }
  return {
    lua: [penalties],
    ...(listsBans(config) && {
      watch: (inner, database) => withBanList(inner, database, options),
    }),
  }
}
