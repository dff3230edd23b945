package agenttest

import (
	"os"
	"syscall"
)

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func crash() error {
	os.Exit(3)
	return nil
}
