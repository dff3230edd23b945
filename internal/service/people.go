package service

import (
	"strings"

	"github.com/musterhq/muster/internal/people"
	"github.com/musterhq/muster/internal/people/providers"
)

// openPeople opens the pages on which people sign in.
func (x *Service) openPeople() error {
	file, err := providers.ReadFile(x.settings.People)
	if err != nil {
		return err
	}
	x.people, err = people.NewDoor(people.Config{
		Engine: x.engine, Secret: x.secret, Keys: x.keys, URL: strings.TrimRight(webURL(x.publicURL), "/"), File: file, Private: x.private, Secure: x.transport.Secure,
		Proxies: x.proxies, Signins: x.signins.Door("sign-in"), Audit: x.audit, Log: x.log,
	})
	if err != nil {
		return err
	}
	x.once = append(x.once, x.people.Rechecker())
	return nil
}
