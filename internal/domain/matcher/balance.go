package matcher
