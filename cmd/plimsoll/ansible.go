package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"plimsoll/internal/input"
	"plimsoll/internal/inventory"
	"plimsoll/internal/ssh"
)

// hostsNamed are the hosts that --hosts names, as --host values: those of a file, or of a group of an inventory.
func (w *world) hostsNamed(named string) ([]string, error) {
	i := strings.LastIndexByte(named, '@')
	if _, err := os.Stat(named); i < 0 || err == nil {
		return readHosts(named)
	}
	file, group := named[:i], named[i+1:]
	var err error
	if file == "" {
		file, err = w.inventoryFile()
	}
	var text []byte
	if err == nil {
		text, err = readInventory(file)
	}
	if err != nil {
		return nil, fmt.Errorf("--hosts %s: %w", named, err)
	}
	list, err := inventory.Hosts(text, group)
	var values []string
	for _, h := range list {
		spec, wrong := specOf(h)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("line %d: %w", h.Line, wrong))
		}
		values = append(values, h.Name+"="+spec)
	}
	if err != nil {
		return nil, fmt.Errorf("--hosts %s: %s: %w", named, file, err)
	}
	return values, nil
}

// specOf is how a host of an inventory is observed, as --host has it behind the "=".
func specOf(h inventory.Host) (string, error) {
	if !hostName().MatchString(h.Name) {
		return "", fmt.Errorf("%q can be no host's name here: want letters, digits, dots, dashes; name it so, with its address as ansible_host", h.Name)
	}
	switch h.Connection {
	case "local":
		return "local", nil
	case "", "ssh", "smart", "paramiko", "paramiko_ssh":
	default:
		return "", fmt.Errorf("%s is reached by %q, and hosts are observed by ssh alone", h.Name, h.Connection)
	}
	to := h.Address
	if h.Port != "" {
		to = net.JoinHostPort(h.Address, h.Port)
	}
	if h.User != "" {
		to = h.User + "@" + to
	}
	if _, err := ssh.ParseDestination(to); err != nil {
		return "", fmt.Errorf("%s: %w", h.Name, err)
	}
	return overSSH + to, nil
}

const (
	ansibleConfig = "ansible.cfg"
	ansibleHosts  = "/etc/ansible/hosts"
)

// inventoryFile is the inventory that Ansible would take: of $ANSIBLE_INVENTORY, of ansible.cfg here, or the machine's.
func (w *world) inventoryFile() (string, error) {
	file := w.env("ANSIBLE_INVENTORY")
	if file == "" {
		here, err := os.Stat(".")
		text, missing := input.Read(ansibleConfig, inventory.MaxBytes)
		switch {
		case errors.Is(missing, fs.ErrNotExist):
		case errors.Join(err, missing) != nil:
			return "", errors.Join(err, missing)
		case here.Mode().Perm()&0o002 != 0: // as Ansible: who put it there may be anybody
			return "", fmt.Errorf("everybody may write to this directory, so its %s is not read; name the inventory: FILE@GROUP", ansibleConfig)
		default:
			file = inventory.Configured(text)
		}
	}
	if file == "" {
		file = ansibleHosts
	}
	if strings.Contains(file, ",") {
		return "", fmt.Errorf("the inventory is a list (%s); name one file of it: FILE@GROUP", file)
	}
	return file, nil
}

// readInventory reads an inventory that is a file, and no program that makes one.
func readInventory(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; an inventory is looked for in $ANSIBLE_INVENTORY, in %s here and at %s, or named: FILE@GROUP", err, ansibleConfig, ansibleHosts)
	}
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory; name one file of it: FILE@GROUP", file)
	case info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0:
		return nil, fmt.Errorf("%s is a program that makes an inventory (or chmod -x it), and is not run; ansible-inventory --list --yaml --output FILE runs it, then name FILE@GROUP", file)
	}
	return input.Read(file, inventory.MaxBytes)
}
