package service

import "github.com/musterhq/muster/internal/identity"

// checkPermissions refuses to start when other users of the machine may know the secret, and warns of the rest.
func (x *Service) checkPermissions() error {
	warnings, err := identity.CheckPermissions(x.settings.Data)
	for _, w := range warnings {
		x.log.Warn(w)
	}
	return err
}
