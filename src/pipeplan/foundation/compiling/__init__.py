"""Write kernels as C and compile them, in builds and for moves from outside. A build imports no other subpackage."""
