"""What one's own machine takes over what data sheets and published kernels say."""
