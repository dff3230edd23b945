// Package join joins errors.
package join

import "errors"

// Join returns an error that wraps all non-nil errors.
func Join(errs ...error) error { return errors.Join(errs...) }
