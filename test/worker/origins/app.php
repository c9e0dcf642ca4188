<?php // Routes as small PHP apps do: the decoded path, trimmed or matched with `$`.
$path = rawurldecode(explode('?', $_SERVER['REQUEST_URI'], 2)[0]);
if (($_SERVER['HTTP_X_ASKED'] ?? '') !== '') { echo $_SERVER['HTTP_X_ASKED']; }
elseif (preg_match('~^/(login|health|free)/?$~', $path, $found)) { echo $found[1]; }
elseif (preg_match('~^/users/([^/]+)$~', $path, $found)) { echo "users\n", $found[1]; }
elseif (preg_match('~^/admin(/|$)~', trim($path))) { echo 'admin'; }
else { http_response_code(404); }
