package service

import (
	"context"
	"sync"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/secretrotation"
)

// openKeys publishes the access keys of the state to the doors.
func (x *Service) openKeys(ctx context.Context) (err error) {
	if x.keys, err = keyring.Open(ctx, keyring.Config{Engine: x.engine, Dir: x.settings.Data, Secret: x.secret, Log: x.log, Node: x.node != nil}); err != nil {
		return err
	}
	if err := x.openSecrets(ctx); err != nil {
		return err
	}
	if x.node == nil {
		x.warnOfNoKeys(ctx)
		return nil
	}
	x.once = append(x.once, &keysOffice{x: x})
	return nil
}

// holderName returns the name of the holder of a quota.
func (x *Service) holderName(h quota.Holder) (name string) {
	_ = x.engine.ReadHere(context.Background(), func(v *cell.View) error { // an error does not matter: the name is set, and need not be durable
		name = x.quotas.Namer(v.AccessKeys)(h)
		return nil
	})
	return name
}

// openSecrets keeps the generations of the secret in step with the state.
func (x *Service) openSecrets(ctx context.Context) (err error) {
	c := secretrotation.Config{Engine: x.engine, Secret: x.secret, Changed: x.keys.SecretChanged, Log: x.log}
	if x.node != nil {
		c.Node, c.Current, c.Fetch = x.node.ID(), x.node.Current, secretrotation.FetchFrom(x.node.Requests())
		x.questions.Handle("GET "+secretrotation.QuestionPath, secretrotation.Answer(x.secret))
	}
	if x.secrets, err = secretrotation.Open(ctx, c); err != nil {
		return err
	}
	x.once = append(x.once, x.secrets)
	return nil
}

// keysOffice imports the access keys of an earlier release, at the leader of a cluster.
type keysOffice struct {
	x      *Service
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Lead implements office.Part.
func (o *keysOffice) Lead() {
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	o.work.Go(func() {
		if err := o.x.keys.TakeOver(ctx); err != nil && ctx.Err() == nil {
			o.x.log.Error("the access keys of an earlier release could not be imported", "error", err)
		}
		o.x.warnOfNoKeys(ctx)
	})
}

// Rest implements office.Part.
func (o *keysOffice) Rest() {
	if o.cancel != nil {
		o.cancel()
		o.work.Wait()
	}
}

func (x *Service) warnOfNoKeys(ctx context.Context) {
	if list, err := x.keys.List(ctx); err == nil && len(list) == 0 && !x.settings.Dev {
		x.log.Warn("there is no access key, so every request will be refused; create one with `muster keys create`", "directory", x.settings.Data)
	}
}

// openLocalDoor opens the door through which commands on this machine reach the service.
func (x *Service) openLocalDoor() (err error) {
	c := localdoor.Config{
		Dir: x.settings.Data, Keys: x.keys, Secrets: x.secrets, Log: x.log, Audit: x.audit, Stream: x.streamBackup, Stored: x.noteBackup, Export: x.export, RolesOf: rolesOf, Reload: x.Reload, SupportBundle: x.supportBundle,
	}
	if x.node != nil {
		c.Cluster = x.node
	}
	x.local, err = localdoor.Open(c)
	return err
}
