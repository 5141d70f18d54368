package main

import "syscall"

// childAttr puts a child into a process group of its own, so that an interrupt
// from the terminal reaches the tour alone, which then stops the children in
// order; and it has the kernel kill the child should the tour die without
// stopping it. The kernel watches the thread that started the child.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
