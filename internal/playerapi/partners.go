package playerapi

import "github.com/musterhq/muster/internal/playerapi/connectiontoken"

// PartnersConfig is what the calls of trusted servers need.
type PartnersConfig struct {
	State  *State
	Auth   *Authenticator
	Tokens *connectiontoken.Signer
	Feeds  *Feeds
}

type partnersDoor struct {
	PartnersConfig
	realm *Realm
}

// declarePartners declares the calls of trusted servers.
func declarePartners(r *Realm, c PartnersConfig) {
	d := &partnersDoor{c, r}
	d.declarePartner()
	d.declareServers()
	d.declareBackfill()
	d.declareEvents()
}
