/** What the project does not have yet. What needs it is left out while it is empty. */
import manifest from '../../package.json' with { type: 'json' }

/** The repository, such as `https://github.com/owner/name`, for links to source files and to edit a page. Who publishes writes it into package.json. */
export const REPOSITORY = ((manifest as { repository?: string }).repository ?? '').replace(
  /^github:/,
  'https://github.com/',
)
